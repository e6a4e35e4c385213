// Package data reads training and held-out rows from JSON Lines, JSON and Parquet files, and decides their order.
//
// A row is a mapping of columns. Numbers are int64 if they are written as whole numbers, json.Number if those do not fit,
// else float64; a Parquet NaN is null. A row that cannot be used is reported with its file and line, or row number.
package data

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Options say how rows are read.
type Options struct {
	Format           string // auto, jsonl, json, parquet
	PromptColumn     string
	MessagesColumn   string            // read in rows without a prompt column
	CompletionColumn string            // in examples
	IDColumn         string            // "": file name and line
	Columns          map[string]string // further name -> column, or object.column
	Chat             bool              // a prompt that is text is the one message of a user
	SystemPrompt     string            // put before conversations that have no system message; implies Chat
	SkipBad          bool              // leave bad rows out and count them
	NoPrompt         bool              // a row needs no prompt: an environment makes one of its columns
}

// Report is what was read.
type Report struct {
	Rows   int     // used
	Bad    int     // left out
	Faults []error // the first few of those, each with its place
}

func (r Report) String() string {
	s := fmt.Sprintf("%d rows", r.Rows)
	if r.Bad > 0 {
		s += fmt.Sprintf(", %d bad ones left out, such as %v", r.Bad, r.Faults[0])
	}
	return s
}

// Example is one row of supervised fine-tuning.
type Example struct {
	ID string
	// Messages is a conversation of which the first Given messages are the prompt; the assistant's messages after those
	// are learned. nil: Prompt and Completion are plain text, of which the completion is learned.
	Messages           []grpo.Message
	Given              int
	Prompt, Completion string
	Columns            map[string]any // every column that is not one of the above
}

// Prompts reads the prompts of files. No row at all is an error.
func Prompts(files []string, o Options) ([]grpo.Prompt, Report, error) {
	var out []grpo.Prompt
	report, err := each(files, o, func(id string, row map[string]any) error {
		p, err := o.prompt(id, row)
		if err == nil {
			out = append(out, p)
		}
		return err
	})
	return out, report, err
}

// Examples reads the examples of files: conversations (messages), or prompt and completion. No row at all is an error.
func Examples(files []string, o Options) ([]Example, Report, error) {
	var out []Example
	report, err := each(files, o, func(id string, row map[string]any) error {
		e, err := o.example(id, row)
		if err == nil {
			out = append(out, e)
		}
		return err
	})
	return out, report, err
}

// Rows calls use for every row of a file, as it stands there. The first row that is bad, or that use refuses, is the error.
func Rows(file, format string, use func(row map[string]any) error) error {
	var fault error
	err := read(file, format, func(place string, row map[string]any, err error) {
		if fault != nil {
			return
		}
		if err == nil {
			err = use(row)
		}
		if err != nil {
			fault = fmt.Errorf("%s%s: %w", file, place, err)
		}
	})
	return errors.Join(fault, err)
}

// maxFaults is how many bad rows are told one by one.
const maxFaults = 10

// each calls use for every row of files.
func each(files []string, o Options, use func(id string, row map[string]any) error) (Report, error) {
	var r Report
	if len(files) == 0 {
		return r, errors.New("no data files are given: set data.train_files")
	}
	names, err := shortNames(files)
	if err != nil {
		return r, err
	}
	seen := map[string]string{}
	for i, file := range files {
		err := read(file, o.Format, func(place string, row map[string]any, err error) {
			if err == nil {
				err = o.row(names[i]+place, file+place, row, seen, use)
			}
			if err == nil {
				r.Rows++
				return
			}
			if r.Bad++; len(r.Faults) < maxFaults {
				r.Faults = append(r.Faults, fmt.Errorf("%s%s: %w", file, place, err))
			}
		})
		if err != nil {
			return r, fmt.Errorf("read %s: %w", file, err)
		}
	}
	switch {
	case r.Bad > 0 && !o.SkipBad:
		return r, fmt.Errorf("%d bad rows: repair them, or set data.on_bad_row to skip:\n%w", r.Bad, errors.Join(r.Faults...))
	case r.Rows == 0 && r.Bad > 0:
		return r, fmt.Errorf("all %d rows are bad:\n%w", r.Bad, errors.Join(r.Faults...))
	case r.Rows == 0:
		return r, fmt.Errorf("there is no row in %s", strings.Join(files, ", "))
	}
	return r, nil
}

// row gives a row its identity and further names, and uses it.
func (o Options) row(id, place string, row map[string]any, seen map[string]string, use func(string, map[string]any) error) error {
	if o.IDColumn != "" {
		switch v := row[o.IDColumn].(type) {
		case nil:
			return fmt.Errorf("has no %s, which should name the row", o.IDColumn)
		case string, int64:
			id = fmt.Sprint(v)
		default:
			return fmt.Errorf("%s is %s, want text or a whole number", o.IDColumn, kind(v))
		}
	}
	if other := seen[id]; other != "" {
		return fmt.Errorf("has the name %q, which %s has too", id, other)
	}
	further := map[string]any{}
	for name, from := range o.Columns {
		v, ok := lookup(row, from)
		if !ok {
			return fmt.Errorf("has no %s, which should be known as %s", from, name)
		}
		if _, taken := row[name]; taken && name != from {
			return fmt.Errorf("has a column %s already: %s needs another name", name, from)
		}
		further[name] = v
	}
	maps.Copy(row, further)
	err := use(id, row)
	if err == nil {
		seen[id] = place
	}
	return err
}

// lookup finds a column, or a.b inside the object a.
func lookup(row map[string]any, path string) (any, bool) {
	if v, ok := row[path]; ok {
		return v, true
	}
	first, rest, ok := strings.Cut(path, ".")
	if !ok {
		return nil, false
	}
	inner, ok := row[first].(map[string]any)
	if !ok {
		return nil, false
	}
	return lookup(inner, rest)
}

// shortNames are the names of files in row names: without their folders, if they then still differ.
func shortNames(files []string) ([]string, error) {
	short, given := map[string]bool{}, map[string]bool{}
	names := make([]string, len(files))
	for i, f := range files {
		if given[filepath.Clean(f)] {
			return nil, fmt.Errorf("%s is given twice: remove one", f)
		}
		names[i] = filepath.Base(f)
		short[names[i]], given[filepath.Clean(f)] = true, true
	}
	if len(short) < len(files) {
		copy(names, files)
	}
	return names, nil
}
