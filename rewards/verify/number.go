package verify

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// number gives full credit if the last number of the answer is a right one, up to a tolerance.
type number struct {
	answer
	Tolerance float64 `json:"tolerance"` // absolute difference allowed
	Relative  float64 `json:"relative"`  // further difference allowed, as a share of the right number
}

func (k *number) compile(row *grpo.Prompt) (Check, error) {
	if !(k.Tolerance >= 0) || !(k.Relative >= 0) {
		return nil, errors.New("tolerance and relative must not be negative")
	}
	find, right, err := k.prepare(row)
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(right))
	for i, r := range right {
		var ok bool
		if values[i], ok = lastNumber(r); !ok {
			return nil, fmt.Errorf("the right answer %q holds no number", r)
		}
	}
	return func(c *grpo.Completion) (float64, string) {
		text, _ := find(c.Text)
		got, ok := lastNumber(text)
		if !ok {
			return 0, "no number found"
		}
		for _, v := range values {
			if math.Abs(got-v) <= k.Tolerance+k.Relative*math.Abs(v) {
				return 1, "right"
			}
		}
		return 0, fmt.Sprintf("%v is not %v", got, values)
	}, nil
}

const decimal = `(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)`

var (
	// numberRun has the groups sign, numerator and denominator of \frac, number, and denominator behind a slash.
	numberRun = regexp.MustCompile(`(-?)(?:` +
		`\\[dt]?frac\{\s*(-?` + decimal + `)\s*\}\{\s*(-?` + decimal + `)\s*\}` +
		`|(` + decimal + `(?:[eE][-+]?\d+)?)(?:\s*/\s*(` + decimal + `))?)`)
	plainSign = strings.NewReplacer(`\$`, "", "$", "", "−", "-")
)

// lastNumber reads the last number in a text: 1,234.5, -3, .5, 2e3, 3/4 or \frac{3}{4}, with or without a $ before it.
// A minus that follows a letter or a digit is a dash.
func lastNumber(text string) (float64, bool) {
	text = plainSign.Replace(text)
	all := numberRun.FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	at := all[len(all)-1]
	group := func(i int) string {
		if at[2*i] < 0 {
			return ""
		}
		return strings.ReplaceAll(text[at[2*i]:at[2*i+1]], ",", "")
	}
	over, under := group(4), group(5)
	if over == "" {
		over, under = group(2), group(3)
	}
	x, err := strconv.ParseFloat(over, 64)
	if err == nil && under != "" {
		var d float64
		d, err = strconv.ParseFloat(under, 64)
		x /= d
	}
	before := lastRune(text[:at[0]])
	if group(1) == "-" && !inWord(before) {
		x = -x
	}
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}
