package verify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify/instruct"
)

// instruction checks one instruction of IFEval or IFBench (package instruct), the same for every row: a criterion by itself.
type instruction struct {
	ID     string         `json:"id"`     // such as keywords:existence
	Kwargs map[string]any `json:"kwargs"` // its arguments, under the benchmark's names
	Mode   string         `json:"mode"`   // the official readings: strict or loose
}

func (k *instruction) compile(*grpo.Prompt) (Check, error) {
	if k.ID == "" {
		return nil, errors.New("id is not set: give an instruction of IFEval or IFBench, such as keywords:existence")
	}
	if err := validMode(k.Mode); err != nil {
		return nil, err
	}
	i, err := instruct.Compile(k.ID, k.Kwargs)
	if err != nil {
		return nil, err
	}
	return func(c *grpo.Completion) (float64, string) {
		ok := follows(i, k.Mode, c.Text)
		return yes(ok), verdict(ok, "followed", "not followed")
	}, nil
}

func validMode(mode string) error {
	if mode != "strict" && mode != "loose" {
		return fmt.Errorf("mode is %q: use strict or loose", mode)
	}
	return nil
}

// follows is the official verdict on a response.
func follows(i *instruct.Instruction, mode, response string) bool {
	if mode == "loose" {
		return i.Loose(response)
	}
	return i.Strict(response)
}

// instructions checks a row's own instructions of IFEval and IFBench, whose ids and arguments stand in two columns.
type instructions struct {
	IDs         string `json:"ids"`         // column with the list of ids
	Kwargs      string `json:"kwargs"`      // column with the list of their arguments
	Mode        string `json:"mode"`        // the official readings: strict or loose
	Credit      string `json:"credit"`      // share of the instructions that are followed, or all: 1 only if all are
	Unsupported string `json:"unsupported"` // an unknown id: fail, or skip it; a row of only such ids is not checked
}

func (k *instructions) compile(row *grpo.Prompt) (Check, error) {
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
			if !follows(i, k.Mode, c.Text) {
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
	case k.Credit != "share" && k.Credit != "all":
		return fmt.Errorf("credit is %q: use share or all", k.Credit)
	case k.Unsupported != "fail" && k.Unsupported != "skip":
		return fmt.Errorf("unsupported is %q: use fail or skip", k.Unsupported)
	}
	return validMode(k.Mode)
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
		if k.Unsupported == "skip" && !instruct.Known(id) {
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
