package verify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify/instruct"
)

// instructions checks a row's IFEval instructions (package instruct), whose ids and arguments stand in two columns.
type instructions struct {
	IDs         string `json:"ids"`         // column with the list of ids
	Kwargs      string `json:"kwargs"`      // column with the list of their arguments
	Mode        string `json:"mode"`        // the official readings: strict or loose
	Credit      string `json:"credit"`      // share of the instructions that are followed, or all: 1 only if all are
	Unsupported string `json:"unsupported"` // an id that cannot be checked: fail, or skip it; a row of only such ids is not checked
}

func (k *instructions) compile(row *grpo.Prompt) (check, error) {
	if err := k.validate(); err != nil || row == nil {
		return nil, err
	}
	all, err := k.read(row)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		var broken []string
		for _, i := range all {
			follows := i.Strict
			if k.Mode == "loose" {
				follows = i.Loose
			}
			if !follows(c.Text) {
				broken = append(broken, i.ID)
			}
		}
		if k.Credit == "all" {
			return yes(len(broken) == 0), reason(broken)
		}
		return 1 - float64(len(broken))/float64(len(all)), reason(broken)
	}, nil
}

func reason(broken []string) string {
	if len(broken) == 0 {
		return "all followed"
	}
	return "not followed: " + strings.Join(broken, ", ")
}

func (k *instructions) validate() error {
	switch {
	case k.IDs == "" || k.Kwargs == "":
		return errors.New("ids and kwargs must name columns")
	case k.Mode != "strict" && k.Mode != "loose":
		return fmt.Errorf("mode is %q: use strict or loose", k.Mode)
	case k.Credit != "share" && k.Credit != "all":
		return fmt.Errorf("credit is %q: use share or all", k.Credit)
	case k.Unsupported != "fail" && k.Unsupported != "skip":
		return fmt.Errorf("unsupported is %q: use fail or skip", k.Unsupported)
	}
	return nil
}

// read compiles the row's instructions.
func (k *instructions) read(row *grpo.Prompt) ([]*instruct.Instruction, error) {
	ids, ok := row.Columns[k.IDs].([]any)
	if !ok || len(ids) == 0 {
		return nil, fmt.Errorf("column %s is not a list of instruction ids", k.IDs)
	}
	kwargs, ok := row.Columns[k.Kwargs].([]any)
	if !ok || len(kwargs) != len(ids) {
		return nil, fmt.Errorf("column %s is not a list of %d maps, one for each id", k.Kwargs, len(ids))
	}
	var all []*instruct.Instruction
	for i := range ids {
		id, _ := ids[i].(string)
		args, ok := kwargs[i].(map[string]any)
		if !ok && kwargs[i] != nil {
			return nil, fmt.Errorf("column %s: entry %d is not a map", k.Kwargs, i+1)
		}
		if k.Unsupported == "skip" && instruct.Known(id) && !instruct.Supported(id) {
			continue
		}
		c, err := instruct.Compile(id, args)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
