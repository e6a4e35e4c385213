package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// newest stands for the version that came last.
const newest = -1

// rubric returns a file's rubric, or a version of a run's.
func (o rubricChoice) rubric(warn io.Writer, path string, version int) (criteria.Set, error) {
	if !isDir(path) {
		if version != newest || o.scope != "" {
			return criteria.Set{}, fmt.Errorf("%s is no folder of a run: --scope and versions are for those", path)
		}
		return criteria.Load(path, o.format)
	}
	sets, err := o.versions(warn, path)
	if err != nil {
		return criteria.Set{}, err
	}
	return atVersion(sets, version)
}

// pair returns the two rubrics that diff compares.
func (o rubricChoice) pair(warn io.Writer, args []string, from, to int) (a, b criteria.Set, err error) {
	if len(args) == 2 {
		if from != newest || to != newest {
			return a, b, errors.New("--from and --to compare two versions of one run: name it alone")
		}
		if a, err = o.rubric(warn, args[0], newest); err == nil {
			b, err = o.rubric(warn, args[1], newest)
		}
		return a, b, err
	}
	if !isDir(args[0]) {
		return a, b, fmt.Errorf("%s is no folder of a run: name two files to compare", args[0])
	}
	sets, err := o.versions(warn, args[0])
	if err != nil {
		return a, b, err
	}
	if b, err = atVersion(sets, to); err != nil {
		return a, b, err
	}
	if from == newest { // the one before b
		last := len(sets) - 1
		for sets[last].Version() != b.Version() {
			last--
		}
		if last == 0 {
			return a, b, fmt.Errorf("there is only version %d of this rubric up to there: it never changed", b.Version())
		}
		return sets[last-1], b, nil
	}
	a, err = atVersion(sets, from)
	return a, b, err
}

// atVersion finds a version; of two with the same number the later one counts, as after a resumed run.
func atVersion(sets []criteria.Set, version int) (criteria.Set, error) {
	var have []string
	for _, s := range slices.Backward(sets) {
		if version == newest || s.Version() == version {
			return s, nil
		}
		have = append(have, fmt.Sprint(s.Version()))
	}
	slices.Reverse(have)
	return criteria.Set{}, fmt.Errorf("there is no version %d of this rubric: there are %s", version, strings.Join(have, ", "))
}

// versions returns the rubrics of the chosen scope in a run's log, in order, one or more.
func (o rubricChoice) versions(warn io.Writer, run string) ([]criteria.Set, error) {
	events, err := readEvents(warn, run)
	if err != nil {
		return nil, err
	}
	sets := map[string][]criteria.Set{}
	var scopes []string
	for _, e := range events {
		if e.Set == nil {
			continue
		}
		if sets[e.Scope] == nil {
			scopes = append(scopes, e.Scope)
		}
		sets[e.Scope] = append(sets[e.Scope], *e.Set)
	}
	scope := o.scope
	switch {
	case len(scopes) == 0:
		return nil, fmt.Errorf("the log of %s has no rubrics yet", run)
	case scope == "" && len(scopes) == 1:
		scope = scopes[0]
	case scope == "":
		return nil, fmt.Errorf("%s has %d rubrics: choose one with --scope: %s", run, len(scopes), some(scopes))
	case sets[scope] == nil:
		return nil, fmt.Errorf("%s has no rubric of scope %q: there are %s", run, scope, some(scopes))
	}
	return sets[scope], nil
}

// some lists names, not all of very many.
func some(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// readEvents reads a run's rubric log. That its last line is not whole is only a warning: the run may be writing it.
func readEvents(warn io.Writer, run string) ([]criteria.Event, error) {
	events, err := criteria.ReadLog(criteria.LogPath(run))
	switch {
	case errors.Is(err, criteria.ErrTorn):
		fmt.Fprintln(warn, "note:", err)
		return events, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s has no rubric log: give the folder of a run whose reward is by rubrics and which has scored a step; of a part of a mix, RUN/rewards/NAME", run)
	}
	return events, err
}

// printReport prints what was computed from a log, as tables or as one JSON object.
func printReport(w io.Writer, r interface{ Print(io.Writer) error }, asJSON bool) error {
	if !asJSON {
		return r.Print(w)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}

// validateRows checks the rubric of every row of a JSONL file and returns how many there are. The error names the bad rows.
func validateRows(path, format, column string) (rows int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const most = 20 // bad rows that are named
	var faults []error
	r := bufio.NewReader(f)
	for n := 1; len(faults) < most; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if len(strings.TrimSpace(string(line))) > 0 {
			rows++
			if err := validateRow(line, format, column); err != nil {
				faults = append(faults, fmt.Errorf("%s:%d: %w", path, n, err))
			}
		}
		if err != nil {
			break
		}
	}
	if len(faults) == 0 && rows == 0 {
		return 0, fmt.Errorf("%s has no rows", path)
	}
	return rows, errors.Join(faults...)
}

func validateRow(line []byte, format, column string) error {
	var value any
	if err := json.Unmarshal(line, &value); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	if column != "" {
		m, _ := value.(map[string]any)
		v, there := m[column]
		if !there {
			return fmt.Errorf("has no column %s", column)
		}
		value = v
	}
	list, err := criteria.Parse(value, format)
	if err != nil {
		return err
	}
	s, err := criteria.NewSet(criteria.Global, 1, list)
	return errors.Join(err, validateChecks(s))
}

// validateChecks reads the checks of a rubric's criteria, which package criteria leaves to rewards/verify.
func validateChecks(s criteria.Set) error {
	var faults []error
	for i, c := range s.All() {
		if len(c.Check) == 0 {
			continue
		}
		if _, err := verify.Compile(c.Check, nil); err != nil {
			faults = append(faults, fmt.Errorf("criterion %d (%s): check: %w", i+1, c.ID, err))
		}
	}
	return errors.Join(faults...)
}
