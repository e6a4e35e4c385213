package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/minilm"
	"github.com/rubicon-rl/rubicon/rubricmem"
)

// memoryCommand has the commands that read the evaluation memory of a run, also while the run writes it.
func memoryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "memory",
		Short: "Look into the evaluation memory of a run",
	}
	c.AddCommand(memorySearch(), memoryStats(), memoryExport())
	return c
}

// memoryQuery is what memory search looks for.
type memoryQuery struct {
	text, scope, model string
	kinds              []string
	step, n            int
	json               bool
}

func memorySearch() *cobra.Command {
	var q memoryQuery
	c := &cobra.Command{
		Use:   "search RUN QUERY",
		Short: "Print the documents that are most similar to a text",
		Long: `Prints the documents of a run's memory that are most similar to QUERY, the most similar one first. The vectors in the memory are
used if they are lexical, or if --minilm names the model that made them; otherwise texts are compared by their words.`,
		Example: `  rubicon memory search runs/story "length is rewarded" --kind step_summary,update_record --n 5`,
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			q.text = args[1]
			return q.run(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringSliceVar(&q.kinds, "kind", nil, "only documents of these `kinds`: "+kindNames())
	c.Flags().StringVar(&q.scope, "scope", "", "only documents about this rubric: global, or the id of a prompt")
	c.Flags().IntVar(&q.step, "step", newest, "only documents of this step")
	c.Flags().Lookup("step").DefValue = "0" // keeps -1 out of the help
	c.Flags().IntVar(&q.n, "n", 10, "number of documents")
	c.Flags().StringVar(&q.model, "minilm", "", "sentence-transformers `folder` of the model that made the memory's vectors")
	c.Flags().BoolVar(&q.json, "json", false, "print a JSON object for each document")
	return c
}

func kindNames() string {
	var names []string
	for _, k := range rubricmem.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func (q *memoryQuery) run(ctx context.Context, run string, out, talk io.Writer) (err error) {
	if q.n < 1 {
		return fmt.Errorf("--n %d: set it to 1 or more", q.n)
	}
	var e rubricmem.Embedder = rubricmem.Lexical()
	if q.model != "" {
		encoder, shut, fault := openMiniLM(q.model)
		if fault != nil {
			return fault
		}
		defer closing(&err, shut)
		e = encoder
	}
	m, err := readMemory(run, e)
	if err != nil {
		return err
	}
	if by := m.EmbeddedBy(); by != e.Name() && by != "" {
		fmt.Fprintf(talk, "note: the memory's vectors were made by %q, which is not loaded here: comparing words\n", by)
		if m, err = byWords(ctx, m); err != nil {
			return err
		}
	}
	hits, err := q.search(ctx, m)
	if err != nil {
		return err
	}
	return printHits(out, hits, q.json)
}

// openMiniLM loads a sentence encoder on a device of its own.
func openMiniLM(dir string) (e *minilm.Encoder, shut func() error, err error) {
	dev, err := cpu.New(cpu.Options{})
	if err != nil {
		return nil, nil, err
	}
	if e, err = minilm.Open(dir, dev); err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return e, func() error { return errors.Join(e.Close(), dev.Close()) }, nil
}

// byWords is a memory of the same documents that compares their words.
func byWords(ctx context.Context, m *rubricmem.Memory) (*rubricmem.Memory, error) {
	words, err := rubricmem.Open(rubricmem.Options{})
	if err != nil {
		return nil, err
	}
	for docs := range slices.Chunk(slices.Collect(m.All()), 1000) {
		if err := words.Add(ctx, docs...); err != nil {
			return nil, err
		}
	}
	return words, nil
}

func (q *memoryQuery) search(ctx context.Context, m *rubricmem.Memory) ([]rubricmem.Hit, error) {
	f, n := rubricmem.Filter{Scope: q.scope}, q.n
	for _, k := range q.kinds {
		f.Kinds = append(f.Kinds, rubricmem.Kind(k))
	}
	if q.step != newest {
		n = max(n, m.Len()) // all, for those of other steps are dropped afterwards
	}
	lists, err := m.Search(ctx, []string{q.text}, n, f)
	if err != nil {
		return nil, err
	}
	hits := slices.DeleteFunc(lists[0], func(h rubricmem.Hit) bool { return q.step != newest && h.Step != q.step })
	return hits[:min(q.n, len(hits))], nil
}

func printHits(out io.Writer, hits []rubricmem.Hit, asJSON bool) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, h := range hits {
		if asJSON {
			if err := enc.Encode(h); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%.3f  %s\n       %s\n", h.Similarity, heading(&h.Doc), oneLine(h.Text, 200))
	}
	return w.Flush()
}

// heading says what a document is.
func heading(d *rubricmem.Doc) string {
	text := fmt.Sprintf("step %d  %s  %s", d.Step, d.Kind, oneLine(d.ID, 80))
	if d.Scope != "" {
		text += fmt.Sprintf("  scope %s version %d", oneLine(d.Scope, 80), d.Version)
	}
	if d.Prompt != "" && d.Prompt != d.Scope {
		text += "  prompt " + oneLine(d.Prompt, 80)
	}
	return text
}

// oneLine is the beginning of a text as one line without control characters, which a completion may have put there.
func oneLine(text string, n int) string {
	runes := []rune(strings.Join(strings.Fields(printable(text)), " "))
	if len(runes) > n {
		return string(runes[:n]) + " ..."
	}
	return string(runes)
}

// printable is a text without control characters, line breaks apart.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// readMemory reads the memory of a run, or of a folder of a run's part.
func readMemory(run string, e rubricmem.Embedder) (*rubricmem.Memory, error) {
	for _, dir := range []string{filepath.Join(run, "memory"), run} {
		if _, err := os.Stat(filepath.Join(dir, rubricmem.LogName)); err == nil {
			return rubricmem.Read(dir, e)
		}
	}
	parts, err := fs.Glob(os.DirFS(run), "rewards/*/memory/"+rubricmem.LogName)
	switch {
	case err != nil || len(parts) == 0:
		return nil, fmt.Errorf("%s has no evaluation memory: there is one where reward.kind is amaris, from its first update on", run)
	case len(parts) > 1:
		return nil, fmt.Errorf("%s has %d memories: name one, such as %s", run, len(parts), filepath.Join(run, filepath.Dir(parts[0])))
	}
	return rubricmem.Read(filepath.Join(run, filepath.Dir(parts[0])), e)
}
