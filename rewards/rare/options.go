package rare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/options"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// Options are the provider's settings, beside those of scoring.
type Options struct {
	scoring.Options

	Mode    string `json:"mode"`    // sample: a rubric for each prompt; task: one for all rows of a task; static: nothing changes
	Scoring string `json:"scoring"` // how the judge is asked for credits: scoring's mode, which has another meaning here

	Rubric any    `json:"rubric"` // what every prompt's rubric begins with: a list of criteria
	File   string `json:"file"`   // instead of rubric: a JSON file that holds them
	Column string `json:"column"` // column with a row's own criteria, which follow those of rubric; empty: none
	Format string `json:"format"` // of these and of the candidates, as package criteria lists them

	Generator    string  `json:"generator"`     // what proposes replacements: judge, pool or random
	Polarity     string  `json:"polarity"`      // of replacements: negative, positive or mixed
	Levels       int     `json:"levels"`        // the judge scores a replacement that it proposed from 0 to this
	UpdatePrompt string  `json:"update_prompt"` // file with another prompt for the judge that proposes
	MaxRollouts  int     `json:"max_rollouts"`  // completions that it is shown at most
	Similarity   float64 `json:"similarity"`    // a proposal this similar to another criterion is rejected; 1: if it is the same

	Pool       any    `json:"pool"`        // candidates of the generators pool and random: a list of criteria
	PoolColumn string `json:"pool_column"` // column with a row's own candidates, which come before those of pool; empty: none

	MaxPerStep   int `json:"max_per_step"`   // replacements in one step's groups; 0: any number
	MaxPerPrompt int `json:"max_per_prompt"` // replacements in a rubric's life; 0: any number
	MaxPerVisit  int `json:"max_per_visit"`  // replacements in one visit of a rubric; 0: any number
	MinVisits    int `json:"min_visits"`     // a place is switched again at the earliest so many visits later

	TaskColumn string `json:"task_column"` // mode task: data column that names a row's task; empty: all rows are one task
	Retention  bool   `json:"retention"`   // go on scoring replaced criteria, for the log alone
}

// The values that options may have.
const (
	modeSample, modeTask, modeStatic                 = "sample", "task", "static"
	generatorJudge, generatorPool, generatorRandom   = "judge", "pool", "random"
	polarityNegative, polarityPositive, polarityBoth = "negative", "positive", "mixed"
)

// Default are the settings that New starts from: the paper's best variant.
func Default() Options {
	return Options{
		Options: scoring.DefaultOptions(), Mode: modeSample, Scoring: scoring.DefaultOptions().Mode, Format: "auto",
		Generator: generatorJudge, Polarity: polarityNegative, Levels: 4, MaxRollouts: 16, Similarity: 0.6,
		MaxPerPrompt: 32, MinVisits: 1,
	}
}

// decode reads settings and checks them.
func decode(settings map[string]any) (Options, error) {
	o := Default()
	if err := options.Decode(settings, &o); err != nil {
		return o, err
	}
	o.Options.Mode = o.Scoring
	return o, errors.Join(o.choices(), o.ranges(), o.sources())
}

func (o Options) choices() error {
	return errors.Join(
		oneOf("mode", o.Mode, modeSample, modeTask, modeStatic),
		oneOf("generator", o.Generator, generatorJudge, generatorPool, generatorRandom),
		oneOf("polarity", o.Polarity, polarityNegative, polarityPositive, polarityBoth),
		oneOf("scoring", o.Scoring, scoring.Explicit, scoring.PerCriterion),
	)
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
		name        string
		value, low  int
		whatItMeans string
	}{
		{"levels", o.Levels, 1, "1 is met or not"},
		{"max_rollouts", o.MaxRollouts, 2, "one completion shows no difference"},
		{"max_per_step", o.MaxPerStep, 0, "0 is any number"},
		{"max_per_prompt", o.MaxPerPrompt, 0, "0 is any number"},
		{"max_per_visit", o.MaxPerVisit, 0, "0 is any number"},
		{"min_visits", o.MinVisits, 1, "1 is every visit"},
	} {
		if r.value < r.low {
			wrong = append(wrong, fmt.Errorf("%s is %d: set at least %d (%s)", r.name, r.value, r.low, r.whatItMeans))
		}
	}
	if o.Levels > 100 {
		wrong = append(wrong, fmt.Errorf("levels is %d: set at most 100", o.Levels))
	}
	if !(o.Similarity > 0 && o.Similarity <= 1) {
		wrong = append(wrong, fmt.Errorf("similarity is %v: set more than 0 and at most 1 (1 rejects only what is the same)", o.Similarity))
	}
	return errors.Join(wrong...)
}

// sources checks that rubrics and candidates come from somewhere.
func (o Options) sources() error {
	var wrong []error
	if o.Rubric != nil && o.File != "" {
		wrong = append(wrong, errors.New("both rubric and file are set: set one of them"))
	}
	if o.Rubric == nil && o.File == "" && o.Column == "" {
		wrong = append(wrong, errors.New("no rubric: set rubric, file, or column to the data column that holds it"))
	}
	if o.TaskColumn != "" && o.Mode != modeTask {
		wrong = append(wrong, fmt.Errorf("task_column is set, but mode is %s: set mode to task", o.Mode))
	}
	pool := o.Pool != nil || o.PoolColumn != ""
	if o.Generator != generatorJudge && !pool && o.Mode != modeStatic {
		wrong = append(wrong, fmt.Errorf("generator is %s, but there are no candidates: set pool or pool_column", o.Generator))
	}
	if o.Generator == generatorJudge && pool {
		wrong = append(wrong, errors.New("candidates are set, but generator is judge: set generator to pool or random"))
	}
	return errors.Join(wrong...)
}
