package eval

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/verify/instruct"
)

// instructions is IFEval (Zhou et al. 2023) or IFBench (Pyatkin et al. 2025): whether answers follow the verifiable
// instructions of their prompts.
type instructions struct {
	items    []Item
	loose    bool // the loose reading of whole prompts is the headline
	compiled map[string][]*instruct.Instruction
}

// IFEval reads the official file. Its headline is the strict accuracy over prompts.
func IFEval(s Source) (Benchmark, error) { return newInstructions(s, false) }

// IFBench reads the official file. Its headline is the loose accuracy over prompts.
func IFBench(s Source) (Benchmark, error) { return newInstructions(s, true) }

func newInstructions(s Source, loose bool) (Benchmark, error) {
	b := &instructions{loose: loose, compiled: map[string][]*instruct.Instruction{}}
	var err error
	b.items, err = readItems(s.File, func(row map[string]any) (Item, error) {
		prompt, err := text(row, "prompt")
		if err != nil {
			return Item{}, err
		}
		it := Item{Key: keyOf(row["key"]), Messages: ask(prompt)}
		b.compiled[it.Key], err = CompileInstructions(row)
		return it, err
	})
	return b, err
}

// keyOf is a row's key, a number or a text.
func keyOf(v any) string {
	switch k := v.(type) {
	case string:
		return k
	case float64:
		return strconv.FormatFloat(k, 'f', -1, 64)
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// CompileInstructions reads the columns instruction_id_list and kwargs of a row.
func CompileInstructions(row map[string]any) ([]*instruct.Instruction, error) {
	ids, ok := row["instruction_id_list"].([]any)
	args, has := row["kwargs"].([]any)
	if !ok || !has || len(ids) == 0 || len(ids) != len(args) {
		return nil, fmt.Errorf("columns instruction_id_list and kwargs must be two lists of one length")
	}
	var all []*instruct.Instruction
	for i := range ids {
		id, _ := ids[i].(string)
		kwargs, ok := args[i].(map[string]any)
		if !ok && args[i] != nil {
			return nil, fmt.Errorf("entry %d of kwargs is not an object", i+1)
		}
		c, err := instruct.Compile(id, kwargs)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Followed is the official verdict on each instruction of a response, in both readings.
type Followed struct {
	Strict []bool `json:"strict"`
	Loose  []bool `json:"loose"`
}

// Follow checks a response.
func Follow(all []*instruct.Instruction, response string) Followed {
	var f Followed
	for _, i := range all {
		f.Strict = append(f.Strict, i.Strict(response))
		f.Loose = append(f.Loose, i.Loose(response))
	}
	return f
}

func (b *instructions) Items() []Item { return b.items }

func (b *instructions) Score(_ context.Context, item *Item, answer string) (Verdict, error) {
	f := Follow(b.compiled[item.Key], answer)
	strict, loose := count(f.Strict), count(f.Loose)
	n := float64(len(f.Strict))
	v := Verdict{
		Values: map[string]float64{
			"prompt_strict": yes(strict == n), "prompt_loose": yes(loose == n), "strict": strict, "loose": loose, "instructions": n,
		},
		Detail: f,
	}
	for i, instruction := range b.compiled[item.Key] {
		v.Values["strict/"+instruction.ID] += yes(f.Strict[i])
		v.Values["loose/"+instruction.ID] += yes(f.Loose[i])
		v.Values["instructions/"+instruction.ID]++
	}
	return v, nil
}

func count(all []bool) float64 {
	n := 0.0
	for _, ok := range all {
		n += yes(ok)
	}
	return n
}

func (b *instructions) Metrics(v []Verdict) []Metric {
	strict := []Metric{mean("prompt_level_strict_acc", "prompt_strict", v), ratio("inst_level_strict_acc", "strict", "instructions", v)}
	loose := []Metric{mean("prompt_level_loose_acc", "prompt_loose", v), ratio("inst_level_loose_acc", "loose", "instructions", v)}
	if b.loose {
		return append(loose, strict...)
	}
	return append(strict, loose...)
}

// Details are the accuracy of each group of instructions, which is what stands before the colon, and of each kind.
func (b *instructions) Details(v []Verdict) []Metric {
	followed, all := map[string]float64{}, map[string]float64{}
	for _, x := range v {
		for name, n := range x.Values {
			kind, is := strings.CutPrefix(name, "instructions/")
			if !is {
				continue
			}
			group, _, _ := strings.Cut(kind, ":")
			for _, reading := range []string{"strict/", "loose/"} {
				for _, of := range []string{group, kind} {
					followed[reading+of] += x.Values[reading+kind]
					all[reading+of] += n
				}
			}
		}
	}
	var out []Metric
	for _, name := range sortedKeys(all) {
		out = append(out, Metric{Name: name, Value: followed[name] / all[name]})
	}
	return out
}
