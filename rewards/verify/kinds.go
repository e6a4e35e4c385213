package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/internal/options"
)

// kinds makes the settings of each kind of check, with their defaults. A new kind is a struct in its own file and a line here.
var kinds = map[string]func() kind{
	"match":       func() kind { return &match{Compare: "space"} },
	"number":      func() kind { return &number{Tolerance: 1e-6} },
	"qa":          func() kind { return &qa{Rules: HotpotQA, Metric: "em"} },
	"outcome":     func() kind { return &outcome{Metric: "em"} },
	"regex":       func() kind { return &pattern{} },
	"contains":    func() kind { return &contains{} },
	"starts_with": func() kind { return &affix{} },
	"ends_with":   func() kind { return &affix{end: true} },
	"count":       func() kind { return &count{Unit: "words"} },
	"distinct":    func() kind { return &distinct{Unit: "words"} },
	"case":        func() kind { return &letterCase{} },
	"json":        func() kind { return &jsonText{} },
	"instruction": func() kind { return &instruction{Mode: "strict"} },
	"instructions": func() kind {
		return &instructions{IDs: "instruction_id_list", Kwargs: "kwargs", Mode: "strict", Credit: "share", Unsupported: "fail"}
	},
	"think_format": func() kind { return &thinkFormat{} },
	"repetition":   func() kind { return &repetition{NGram: 3} },
}

// kind is a check's settings, decoded strictly by the json tags of the struct behind it.
type kind interface {
	// compile makes the check ready for a row. A nil check does not apply to it. An error says what is wrong with the
	// settings or the row. Without a row (nil) only the settings are looked at.
	compile(row *grpo.Prompt) (Check, error)
}

// Check gives a completion a credit in [0,1] and says why; NaN: it cannot be told. It may be called by several goroutines.
type Check func(c *grpo.Completion) (credit float64, reason string)

// Compile makes one check ready for a row, for criteria of a rubric that a program scores. settings are an entry of the
// option checks without name and weight, which are the criterion's. Without a row (nil) only the settings are looked at
// and there may be no Check; with one, a nil Check does not apply to the row.
func Compile(settings map[string]any, row *grpo.Prompt) (Check, error) {
	for _, name := range []string{"name", "weight"} {
		if _, set := settings[name]; set {
			return nil, fmt.Errorf("verify: check: %s is the criterion's own: set it there", name)
		}
	}
	c, err := decode(settings)
	if err != nil {
		return nil, fmt.Errorf("verify: check: %w", err)
	}
	check, err := c.kind.compile(row)
	if err != nil {
		return nil, fmt.Errorf("verify: check %s: %w", c.name, err)
	}
	return check, nil
}

// criterion is one entry of a list of checks.
type criterion struct {
	name   string
	weight float64
	kind   kind
}

// ready is a criterion whose check has been made ready for a row.
type ready struct {
	criterion
	check Check
}

// criteria decodes a list of checks.
func criteria(list []map[string]any) ([]criterion, error) {
	var out []criterion
	for i, settings := range list {
		c, err := decode(settings)
		if err != nil {
			return nil, fmt.Errorf("check %d: %w", i+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// decode reads one entry: kind, name (default: the kind), weight (default 1), and the kind's own settings.
func decode(settings map[string]any) (criterion, error) {
	head := struct {
		Kind   string  `json:"kind"`
		Name   string  `json:"name"`
		Weight float64 `json:"weight"`
	}{Weight: 1}
	own, common := map[string]any{}, map[string]any{}
	for name, v := range settings {
		switch name {
		case "kind", "name", "weight":
			common[name] = v
		default:
			own[name] = v
		}
	}
	if err := options.Decode(common, &head); err != nil {
		return criterion{}, err
	}
	if head.Kind == "" {
		return criterion{}, fmt.Errorf("has no kind: use one of %s", strings.Join(kindNames(), ", "))
	}
	make, ok := kinds[head.Kind]
	if !ok {
		return criterion{}, options.Unknown("kind", head.Kind, kindNames())
	}
	if head.Name == "" {
		head.Name = head.Kind
	}
	k := make()
	if err := options.Decode(own, k); err != nil {
		return criterion{}, fmt.Errorf("%s: %w", head.Name, err)
	}
	if math.IsNaN(head.Weight) || math.IsInf(head.Weight, 0) {
		return criterion{}, fmt.Errorf("%s: weight is %v: give a finite number", head.Name, head.Weight)
	}
	return criterion{head.Name, head.Weight, k}, nil
}

func kindNames() []string {
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maps takes a column's value, as decoded JSON, as a list of maps.
func maps(value any) ([]map[string]any, error) {
	if list, ok := value.([]map[string]any); ok {
		return list, nil
	}
	list, ok := value.([]any)
	if value == nil || !ok {
		return nil, errors.New("is not a list of {kind, weight, ...}")
	}
	var out []map[string]any
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("entry %d is not a {kind, weight, ...}", i+1)
		}
		out = append(out, m)
	}
	return out, nil
}

// yes is full credit or none.
func yes(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}
