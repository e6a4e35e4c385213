package criteria

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readers read one entry of a rubric in each format. A new format is a function and a line here, and its field in detect.
var readers = map[string]func(entry any) (Criterion, error){
	"rubicon":      readRubicon,
	"rar":          readRaR,
	"openrubrics":  readOpenRubrics,
	"rubrichub":    readPoints("rubrichub"),
	"healthbench":  readPoints("healthbench"),
	"writingbench": readWritingBench,
	"biggen":       readBiGGen,
}

// detect tells the format of an entry by its fields.
func detect(entry any) (string, error) {
	if _, ok := entry.(string); ok {
		return "openrubrics", nil
	}
	m, ok := entry.(map[string]any)
	if !ok {
		return "", fmt.Errorf("the rubric's first entry is %s: give an object or a text", describe(entry))
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { _, ok := m[n]; return !ok })
	}
	_, tagged := m["tags"].([]any)
	switch {
	case has("text"), has("check"):
		return "rubicon", nil
	case has("criterion", "points") && tagged:
		return "healthbench", nil
	case has("criterion", "points"):
		return "rubrichub", nil
	case has("description", "weight"):
		return "rar", nil
	case has("criteria_description"):
		return "writingbench", nil
	case has("criteria", "score1_description"):
		return "biggen", nil
	}
	return "", errors.New("the form of the rubric is not known: give criteria with id, text and weight, or set format to one of " +
		strings.Join(Formats()[1:], ", "))
}

// readRubicon reads rubicon's own form, or a plain text.
func readRubicon(entry any) (c Criterion, err error) {
	if text, ok := entry.(string); ok {
		return Criterion{Text: text, Weight: 1}, nil
	}
	m, ok := entry.(map[string]any)
	if !ok {
		return c, fmt.Errorf("is %s: give an object", describe(entry))
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(ownFields, name) {
			return c, unknown("field", name, ownFields)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return c, err
	}
	var wrong *json.UnmarshalTypeError
	if err = json.Unmarshal(data, &c); errors.As(err, &wrong) {
		return c, fmt.Errorf("%s is a %s, which does not belong there", wrong.Field, wrong.Value)
	}
	return c, err
}

// ownFields are the JSON names of a Criterion's fields.
var ownFields = []string{"id", "text", "weight", "category", "anchor", "polarity", "max_score", "check", "origin", "step"}

// readRaR reads Rubrics as Rewards: title, description, weight.
func readRaR(entry any) (Criterion, error) {
	f := fields{of: entry}
	c := Criterion{Text: titled(f.text("title", true), f.text("description", false)), Weight: f.number("weight"), Origin: "rar"}
	return c, f.err
}

// readPoints reads criterion and points; tags of HealthBench that name a category of ours become it.
func readPoints(origin string) func(any) (Criterion, error) {
	return func(entry any) (Criterion, error) {
		f := fields{of: entry}
		c := Criterion{Text: f.text("criterion", false), Weight: f.number("points"), Origin: origin}
		c.Category = f.category()
		return c, f.err
	}
}

// axes are HealthBench's that are categories of ours; completeness and context_awareness are none.
var axes = map[string]string{
	"axis:accuracy": "correctness", "axis:instruction_following": "instruction_following", "axis:communication_quality": "communication_quality",
}

// readWritingBench reads name, criteria_description and the bands "1-2" to "9-10".
func readWritingBench(entry any) (Criterion, error) {
	f := fields{of: entry}
	text := titled(strings.ReplaceAll(f.text("name", true), "_", " "), f.text("criteria_description", false))
	for _, band := range []string{"1-2", "3-4", "5-6", "7-8", "9-10"} {
		text += "\n" + band + ": " + f.text(band, false)
	}
	return Criterion{Text: text, Weight: 1, MaxScore: 10, Origin: "writingbench"}, f.err
}

// readBiGGen reads BiGGen Bench's criteria with a description of each score from 1 to 5.
func readBiGGen(entry any) (Criterion, error) {
	f := fields{of: entry}
	text := f.text("criteria", false)
	for score := 1; score <= 5; score++ {
		n := strconv.Itoa(score)
		text += "\n" + n + ": " + f.text("score"+n+"_description", false)
	}
	return Criterion{Text: text, Weight: 1, MaxScore: 5, Origin: "biggen"}, f.err
}

// mark is how OpenRubrics tells its two kinds of criteria apart.
var mark = regexp.MustCompile(`(?i)\s*[\[(]\s*(hard[ _]rule|principle)s?\s*[\])]\s*`)

// readOpenRubrics reads a text. A hard rule is one that the instruction states.
func readOpenRubrics(entry any) (Criterion, error) {
	text, ok := entry.(string)
	if !ok {
		return Criterion{}, fmt.Errorf("is %s: openrubrics has texts", describe(entry))
	}
	c := Criterion{Weight: 1, Origin: "openrubrics"}
	if m := mark.FindStringSubmatch(text); m != nil && strings.HasPrefix(strings.ToLower(m[1]), "hard") {
		c.Category = "instruction_following"
	}
	c.Text = strings.TrimSpace(mark.ReplaceAllString(text, " "))
	return c, nil
}

// titled puts a title before a text.
func titled(title, text string) string {
	if title == "" || text == "" {
		return title + text
	}
	return title + ": " + text
}

// fields reads the fields of an entry; the first thing that is wrong stays in err.
type fields struct {
	of  any
	err error
}

func (f *fields) get(name string) any {
	m, ok := f.of.(map[string]any)
	if !ok {
		f.fail(fmt.Errorf("is %s: give an object", describe(f.of)))
	}
	return m[name]
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) text(name string, optional bool) string {
	v := f.get(name)
	s, ok := v.(string)
	switch {
	case v == nil && !optional:
		f.fail(fmt.Errorf("has no %s", name))
	case v != nil && !ok:
		f.fail(fmt.Errorf("%s is %s: give a text", name, describe(v)))
	}
	return strings.TrimSpace(s)
}

func (f *fields) number(name string) float64 {
	v := f.get(name)
	x, ok := v.(float64)
	switch {
	case v == nil:
		f.fail(fmt.Errorf("has no %s", name))
	case !ok:
		f.fail(fmt.Errorf("%s is %s: give a number", name, describe(v)))
	}
	return x
}

// category is that of the first tag that has one.
func (f *fields) category() string {
	tags, _ := f.get("tags").([]any)
	for _, t := range tags {
		name, _ := t.(string)
		if c, ok := axes[name]; ok {
			return c
		}
	}
	return ""
}
