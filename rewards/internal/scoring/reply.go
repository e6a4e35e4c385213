package scoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxReason is how much of a reason is asked for and kept, in characters. A weak model that is held to a schema would
// otherwise write until its tokens are spent.
const maxReason = 200

// maxEnum is the highest score whose values a schema lists one by one, which every server understands.
const maxEnum = 10

// asked is one score that a reply must have: under Key, from 0 to Max.
type asked struct {
	Key string
	Max int
}

// scored is one score that a reply has.
type scored struct {
	Score  int
	Reason string
}

// replySchema is the JSON Schema of a reply: an object with one property for each score, in their order, each an object
// with the reason first, so that it is thought of before the score.
func replySchema(list []asked) json.RawMessage {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	keys := make([]string, len(list))
	for i, a := range list {
		key, _ := json.Marshal(a.Key) // a text is always JSON
		keys[i] = string(key)
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `%s:{"type":"object","properties":{"reason":{"type":"string","maxLength":%d},"score":{"type":"integer",%s}},`+
			`"required":["reason","score"],"additionalProperties":false}`, keys[i], maxReason, bounds(a.Max))
	}
	fmt.Fprintf(&b, `},"required":[%s],"additionalProperties":false}`, strings.Join(keys, ","))
	return b.Bytes()
}

func bounds(most int) string {
	if most > maxEnum {
		return fmt.Sprintf(`"minimum":0,"maximum":%d`, most)
	}
	values := make([]string, most+1)
	for i := range values {
		values[i] = strconv.Itoa(i)
	}
	return `"enum":[` + strings.Join(values, ",") + `]`
}

// readReply reads a reply strictly: exactly the scores of list, each once, whole and within its range. The error says
// everything that is wrong, in words that help to put it right. Scores are in the order of list.
func readReply(text string, list []asked) ([]scored, error) {
	entries, err := readObject([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the reply is not one JSON object: %w", err)
	}
	var faults []error
	place := map[string]int{}
	for i, a := range list {
		place[a.Key] = i
	}
	out := make([]scored, len(list))
	seen := make([]bool, len(list))
	for _, e := range entries {
		i, known := place[e.key]
		switch {
		case !known:
			faults = append(faults, fmt.Errorf("%.64q is not asked for: leave it out", e.key))
			continue
		case seen[i]:
			faults = append(faults, fmt.Errorf("%s is there twice: give it once", e.key))
			continue
		}
		seen[i] = true
		if out[i], err = readScore(e.value, list[i].Max); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", e.key, err))
		}
	}
	for i, a := range list {
		if !seen[i] {
			faults = append(faults, fmt.Errorf("%s is missing: give its reason and score", a.Key))
		}
	}
	return out, errors.Join(faults[:min(len(faults), maxFaults)]...)
}

// maxFaults is how many faults of a reply are told.
const maxFaults = 20

// readScore reads {"reason": ..., "score": ...}.
func readScore(value json.RawMessage, most int) (out scored, err error) {
	fields, err := readObject(value)
	if err != nil {
		return out, errors.New(`is not an object {"reason": ..., "score": ...}`)
	}
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.key] {
			return out, fmt.Errorf("%s is there twice: give it once", f.key)
		}
		seen[f.key] = true
		switch f.key {
		case "reason":
			if err := json.Unmarshal(f.value, &out.Reason); err != nil || f.value[0] != '"' {
				return out, errors.New("reason is not a text")
			}
			out.Reason = cut(out.Reason)
		case "score":
			if out.Score, err = readInt(f.value, most); err != nil {
				return out, err
			}
		default:
			return out, fmt.Errorf("%.64q is not asked for: leave it out", f.key)
		}
	}
	for _, key := range []string{"reason", "score"} {
		if !seen[key] {
			return out, fmt.Errorf("%s is missing", key)
		}
	}
	return out, nil
}

// readInt reads a whole number from 0 to most; 1.0 is one.
func readInt(value json.RawMessage, most int) (int, error) {
	x, err := strconv.ParseFloat(string(value), 64)
	if err != nil || x != math.Trunc(x) || x < 0 || x > float64(most) {
		return 0, fmt.Errorf("score is %.40s: give a whole number from 0 to %d", value, most)
	}
	return int(x), nil
}

func cut(reason string) string {
	reason = strings.TrimSpace(reason)
	if utf8.RuneCountInString(reason) > maxReason {
		return string([]rune(reason)[:maxReason-1]) + "…"
	}
	return reason
}

// entry is one property of an object.
type entry struct {
	key   string
	value json.RawMessage
}

// readObject reads a JSON object that nothing follows, with all its properties in order, repeated ones too.
func readObject(text []byte) ([]entry, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it does not begin with {")
	}
	var list []entry
	for d.More() {
		var e entry
		t, err := d.Token()
		if err == nil {
			e.key, _ = t.(string) // a key is a text, or Token fails
			err = d.Decode(&e.value)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("it does not end: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return list, nil
}
