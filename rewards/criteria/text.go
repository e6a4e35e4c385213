package criteria

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	item    = regexp.MustCompile(`^(?:\(?\d{1,3}[.):]|[-*•])\s+(.*)$`)
	section = regexp.MustCompile(`(?i)^[#* ]*(hard[ _]rule|principle)s?[:* ]*$`)
)

// textItems reads a rubric that is plain text: every numbered or bulleted line begins a criterion, which the lines up to
// the next continue. Lines that say "Hard rules" or "Principles" mark those below them.
func textItems(text string) ([]any, error) {
	var list []any
	under := "" // the mark of the heading above
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		h, m := section.FindStringSubmatch(line), item.FindStringSubmatch(line)
		switch {
		case line == "":
		case h != nil:
			under = " [" + h[1] + "]"
		case m != nil:
			list = append(list, m[1]+under)
		case len(list) > 0:
			list[len(list)-1] = list[len(list)-1].(string) + " " + line
		case !strings.HasSuffix(line, ":"): // not a line that announces the list
			return nil, fmt.Errorf("the rubric is a text whose line %d is no numbered or bulleted criterion: %.60q", n+1, line)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the rubric is a text without criteria: number them, one a line")
	}
	return list, nil
}

// ruleItems returns the entries of an object with the lists hard_rules and principles; nil if m is none.
func ruleItems(m map[string]any) []any {
	var list []any
	for _, key := range []string{"hard_rules", "principles"} {
		entries, _ := m[key].([]any)
		for _, e := range entries {
			if text, ok := e.(string); ok {
				e = text + " [" + strings.ReplaceAll(strings.TrimSuffix(key, "s"), "_", " ") + "]"
			}
			list = append(list, e)
		}
	}
	return list
}
