package amaris

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Options are the provider's settings, beside those of scoring.
type Options struct {
	scoring.Options

	Scope   string `json:"scope"`    // global: one rubric and memory for all prompts; instance: each prompt has its own
	Rubric  any    `json:"rubric"`   // what every rubric begins with: a list of criteria
	File    string `json:"file"`     // instead of rubric: a JSON file that holds them
	FromRun string `json:"from_run"` // folder of a finished run whose last rubrics are the first ones here
	Column  string `json:"column"`   // scope instance: column with a row's own criteria, which follow those of rubric
	Format  string `json:"format"`   // of these, as package criteria lists them
	Anchors any    `json:"anchors"`  // criteria that stand before all others and that no update touches
	Frozen  bool   `json:"frozen"`   // the first rubric stays

	Execution         string `json:"execution"`           // async: improve beside the training; sync: the training waits
	MaxStaleness      int    `json:"max_staleness"`       // async: an update is in force this many steps later than it would be in sync
	UpdateInterval    int    `json:"update_interval"`     // steps whose analyses one update is made from
	MaxUpdateFailures int    `json:"max_update_failures"` // tries of an update, after which a step that waits for it fails

	Retrieval string `json:"retrieval"` // what an update is shown of the memory: both, static, dynamic or none
	Summaries int    `json:"summaries"` // static: the latest step summaries (the paper's N)
	Queries   int    `json:"queries"`   // dynamic: searches (K)
	Documents int    `json:"documents"` // dynamic: documents for each search (D)
	Embedder  string `json:"embedder"`  // of the searches: lexical, policy, openai or minilm

	ChunkSize      int               `json:"chunk_size"`      // analyses that are summarised at once
	AnalysisColumn string            `json:"analysis_column"` // column with a reference answer that the analyst sees; empty: none
	MaxCriteria    int               `json:"max_criteria"`    // of a rubric
	MaxWeight      float64           `json:"max_weight"`      // an update may set weights from minus this to this
	Prompts        map[string]string `json:"prompts"`         // stage -> file with another prompt: analyze, summarize, meta, query, update
}

// The values that options may have.
const (
	scopeGlobal, scopeInstance                           = "global", "instance"
	executionAsync, executionSync                        = "async", "sync"
	retrieveBoth, retrieveStatic, retrieveDynamic, never = "both", "static", "dynamic", "none"
	lexical                                              = "lexical"
)

// Default are the settings that New starts from: the paper's, for one global rubric.
func Default() Options {
	return Options{
		Options: scoring.DefaultOptions(), Scope: scopeGlobal, Format: "auto", Execution: executionAsync, MaxStaleness: 1, UpdateInterval: 1,
		MaxUpdateFailures: 3, Retrieval: retrieveBoth, Summaries: 4, Queries: 10, Documents: 3, Embedder: lexical, ChunkSize: 32,
		MaxCriteria: 32, MaxWeight: 5,
	}
}

// decode reads settings and checks them.
func decode(settings map[string]any) (Options, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return o, err
	}
	return o, errors.Join(o.choices(), o.ranges(), o.sources())
}

func (o Options) choices() error {
	wrong := []error{
		oneOf("scope", o.Scope, scopeGlobal, scopeInstance),
		oneOf("mode", o.Mode, scoring.Explicit, scoring.PerCriterion),
		oneOf("execution", o.Execution, executionAsync, executionSync),
		oneOf("retrieval", o.Retrieval, retrieveBoth, retrieveStatic, retrieveDynamic, never),
		oneOf("embedder", o.Embedder, lexical, "policy", "openai", "minilm"),
	}
	for _, name := range slices.Sorted(maps.Keys(o.Prompts)) {
		wrong = append(wrong, oneOf("prompts", name, stages...))
	}
	return errors.Join(wrong...)
}

func oneOf(name, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: use one of %s", name, value, strings.Join(allowed, ", "))
}

func (o Options) ranges() error {
	var wrong []error
	for _, r := range []struct {
		name             string
		value, low, high int
	}{
		{"max_staleness", o.MaxStaleness, 0, 64},
		{"update_interval", o.UpdateInterval, 1, 1 << 20},
		{"max_update_failures", o.MaxUpdateFailures, 1, 1 << 20},
		{"summaries", o.Summaries, 1, 64},
		{"queries", o.Queries, 1, 64},
		{"documents", o.Documents, 1, 64},
		{"chunk_size", o.ChunkSize, 2, 1 << 20},
		{"max_criteria", o.MaxCriteria, 1, criteria.MaxCriteria},
	} {
		if r.value < r.low || r.value > r.high {
			wrong = append(wrong, fmt.Errorf("%s is %d: set %d to %d", r.name, r.value, r.low, r.high))
		}
	}
	if !(o.MaxWeight > 0 && o.MaxWeight <= 1e6) {
		wrong = append(wrong, fmt.Errorf("max_weight is %v: set more than 0 and at most 1e6", o.MaxWeight))
	}
	return errors.Join(wrong...)
}

// sources checks where rubrics come from.
func (o Options) sources() error {
	var wrong []error
	given := 0
	for _, is := range []bool{o.Rubric != nil, o.File != "", o.FromRun != "" && o.Scope == scopeGlobal} {
		if is {
			given++
		}
	}
	if given > 1 {
		wrong = append(wrong, errors.New("more than one of rubric, file and from_run is set: set one of them"))
	}
	if o.Scope == scopeGlobal && o.Column != "" {
		wrong = append(wrong, errors.New("column is set, but scope is global: set scope to instance"))
	}
	if o.Scope == scopeInstance && o.Column == "" && given == 0 && o.FromRun == "" {
		wrong = append(wrong, errors.New("no rubric: set column to the data column that holds each row's, or rubric or file"))
	}
	return errors.Join(wrong...)
}

func (o Options) goalless() bool { return strings.TrimSpace(o.Goal) == "" }

// delay is after how many steps beyond the next one an update is in force.
func (o Options) delay() int {
	if o.Execution == executionSync {
		return 0
	}
	return o.MaxStaleness
}

// static and dynamic tell what is retrieved.
func (o Options) static() bool  { return o.Retrieval == retrieveBoth || o.Retrieval == retrieveStatic }
func (o Options) dynamic() bool { return o.Retrieval == retrieveBoth || o.Retrieval == retrieveDynamic }
