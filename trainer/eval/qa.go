package eval

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// multiHop is HotpotQA, 2WikiMultiHopQA or MuSiQue, asked in one turn with all paragraphs of the row, or in several by a policy that has an
// environment.
type multiHop struct {
	items []Item
	rules verify.QARules
	right map[string][]string
}

// HotpotQA reads a file of the distractor setting (Yang et al. 2018).
func HotpotQA(s Source) (Benchmark, error) { return newMultiHop(s, verify.HotpotQA, nil) }

// TwoWiki reads a file of 2WikiMultiHopQA (Ho et al. 2020). Other names of the answers are known if id_aliases.json lies beside it, as in the
// official archive.
func TwoWiki(s Source) (Benchmark, error) {
	aliases, err := readAliases(filepath.Join(filepath.Dir(s.File), "id_aliases.json"))
	if err != nil {
		return nil, err
	}
	return newMultiHop(s, verify.HotpotQA, aliases)
}

// MuSiQue reads a file of MuSiQue-Ans (Trivedi et al. 2022).
func MuSiQue(s Source) (Benchmark, error) { return newMultiHop(s, verify.MuSiQue, nil) }

func newMultiHop(s Source, rules verify.QARules, aliases map[string][]string) (Benchmark, error) {
	b := &multiHop{rules: rules, right: map[string][]string{}}
	var err error
	b.items, err = readItems(s.File, func(row map[string]any) (Item, error) {
		f, err := texts(row, "question", "answer")
		if err != nil {
			return Item{}, err
		}
		it := Item{Key: keyOf(row["_id"]), Task: true}
		if it.Key == "" {
			it.Key = keyOf(row["id"])
		}
		paragraphs, err := paragraphs(row)
		if err != nil {
			return it, err
		}
		right := []string{f[1]}
		if more, ok := row["answer_aliases"].([]any); ok {
			for _, a := range more {
				right = append(right, fmt.Sprint(a))
			}
		}
		right = append(right, aliases[keyOf(row["answer_id"])]...)
		b.right[it.Key] = right
		it.Messages = ask(strings.Join(paragraphs, "\n\n") + "\n\nQuestion: " + f[0] + "\nAnswer with the answer alone, a few words, or yes or no.")
		return it, nil
	})
	return b, err
}

// paragraphs are a row's, each with its title before it.
func paragraphs(row map[string]any) ([]string, error) {
	var out []string
	if list, ok := row["context"].([]any); ok { // [title, [sentence, ...]]
		for _, p := range list {
			pair, ok := p.([]any)
			if !ok || len(pair) != 2 {
				return nil, errors.New("column context is not a list of [title, sentences]: take the official file")
			}
			sentences, _ := pair[1].([]any)
			all := fmt.Sprint(pair[0]) + ":"
			for _, s := range sentences {
				all += " " + strings.TrimSpace(fmt.Sprint(s))
			}
			out = append(out, all)
		}
	}
	list, _ := row["paragraphs"].([]any)
	for _, p := range list {
		m, _ := p.(map[string]any)
		out = append(out, fmt.Sprintf("%v: %v", m["title"], m["paragraph_text"]))
	}
	if len(out) == 0 {
		return nil, errors.New("the row has neither context nor paragraphs: take the official file")
	}
	return out, nil
}

// readAliases reads lines of {"Q_id", "aliases", "demonyms"}; a file that is not there knows none.
func readAliases(file string) (map[string][]string, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string][]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row struct {
			ID       string   `json:"Q_id"`
			Aliases  []string `json:"aliases"`
			Demonyms []string `json:"demonyms"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[row.ID] = append(row.Aliases, row.Demonyms...)
	}
	return out, lines.Err()
}

func (b *multiHop) Items() []Item { return b.items }

func (b *multiHop) Score(_ context.Context, item *Item, answer string) (Verdict, error) {
	right := b.right[item.Key]
	em, f1 := b.rules.Score(answer, right...)
	arco, _ := verify.ARCO.Score(answer, right[0])
	return Verdict{Values: map[string]float64{"em": em, "f1": f1, "arco_em": arco}}, nil
}

func (b *multiHop) Metrics(v []Verdict) []Metric {
	return []Metric{mean("em", "em", v), mean("f1", "f1", v), mean("arco_em", "arco_em", v)}
}
