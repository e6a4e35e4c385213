package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/rubricmem"
)

func memoryStats() *cobra.Command {
	return &cobra.Command{
		Use:   "stats RUN",
		Short: "Print how many documents there are, and of what",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := readMemory(args[0], nil)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), describe(m))
			return err
		},
	}
}

// maxScopes is how many scopes memory stats names.
const maxScopes = 10

// describe is what memory stats prints.
func describe(m *rubricmem.Memory) string {
	var b strings.Builder
	kinds, scopes, steps := map[rubricmem.Kind]int{}, map[string]int{}, map[int]bool{}
	first, last := 0, 0
	for d := range m.All() {
		if len(steps) == 0 {
			first, last = d.Step, d.Step
		}
		first, last = min(first, d.Step), max(last, d.Step)
		steps[d.Step] = true
		kinds[d.Kind]++
		scopes[d.Scope]++
	}
	fmt.Fprintf(&b, "%d documents of %d steps", m.Len(), len(steps))
	if len(steps) > 0 {
		fmt.Fprintf(&b, ", %d to %d", first, last)
	}
	fmt.Fprintf(&b, "\nlog of %d bytes, vectors by %q\n", m.Size(), m.EmbeddedBy())
	for _, k := range rubricmem.Kinds() {
		fmt.Fprintf(&b, "  %-14s %d\n", k, kinds[k])
	}
	names := slices.SortedFunc(maps.Keys(scopes), func(x, y string) int { return cmp.Or(scopes[y]-scopes[x], cmp.Compare(x, y)) })
	fmt.Fprintf(&b, "scopes: %d\n", len(names))
	for i, name := range names {
		if i == maxScopes {
			fmt.Fprintf(&b, "  and %d more\n", len(names)-i)
			break
		}
		fmt.Fprintf(&b, "  %-14s %d\n", oneLine(name, 80), scopes[name])
	}
	if n := m.Torn(); n > 0 {
		fmt.Fprintf(&b, "the last record is not whole (%d bytes): a run writes it now, or was stopped while it did\n", n)
	}
	return b.String()
}

func memoryExport() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "export RUN",
		Short: "Print all documents, in the order in which they were added",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			write, ok := map[string]func(io.Writer, *rubricmem.Doc) error{"jsonl": writeJSONLine, "md": writeMarkdown}[format]
			if !ok {
				return fmt.Errorf("--format %q: use jsonl or md", format)
			}
			m, err := readMemory(args[0], nil)
			if err != nil {
				return err
			}
			w := bufio.NewWriter(c.OutOrStdout())
			for d := range m.All() {
				if err := write(w, &d); err != nil {
					return err
				}
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl, a JSON object a line, or md, Markdown for people")
	return c
}

func writeJSONLine(w io.Writer, d *rubricmem.Doc) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// writeMarkdown writes a document as a section: its text as a quotation, so that it cannot pass for a heading, and its data.
func writeMarkdown(w io.Writer, d *rubricmem.Doc) error {
	text := strings.ReplaceAll(strings.TrimSpace(printable(d.Text)), "\n", "\n> ")
	if _, err := fmt.Fprintf(w, "## %s\n\n> %s\n\n", heading(d), text); err != nil {
		return err
	}
	if len(d.Data) == 0 {
		return nil
	}
	var data bytes.Buffer
	if err := json.Indent(&data, d.Data, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "```json\n%s\n```\n\n", printable(data.String()))
	return err
}
