package health

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// values are a line of a healthy run, changed by what is given.
func values(changed map[string]float64) map[string]float64 {
	v := map[string]float64{
		"num_tokens": 1, "reward": 0.5, "reward_std": 0.2, "frac_reward_zero_std": 0.1, "entropy": 1, "kl": 0.01,
		"completions/mean_length": 100, "completions/clipped_ratio": 0, "grad_norm": 0.1, "learning_rate": 1e-5,
	}
	maps.Copy(v, changed)
	return v
}

// run is a history of n lines, each of so many steps; changed says what a line has other than a healthy one.
func run(n, steps int, changed func(line int) map[string]float64) []track.Record {
	out := make([]track.Record, n)
	for i := range out {
		out[i] = track.Record{Step: (i + 1) * steps, Values: values(changed(i))}
	}
	return out
}

// from is a history of 20 lines of 10 steps in which metrics take other values from line 10 on.
func from(changed map[string]float64) []track.Record {
	return run(20, 10, func(line int) map[string]float64 {
		if line < 10 {
			return nil
		}
		return changed
	})
}

// Windows have three lines here, since a line has ten steps: what begins with line 10 (step 110) is told when the mean of three
// lines is past the threshold, by hand calculation.
func TestDiagnoses(t *testing.T) {
	for name, c := range map[string]struct {
		records []track.Record
		kind    string
		step    int
		text    string
	}{
		"reward falls below half its gain": {run(20, 10, func(line int) map[string]float64 {
			switch {
			case line < 3:
				return map[string]float64{"reward": 0.2}
			case line < 10:
				return map[string]float64{"reward": 0.8, "reward_std": 0.1}
			}
			return map[string]float64{"reward": 0.3, "reward_std": 0.3}
		}), "reward-collapse", 120, "from 0.8 at step 60 to 0.467"},
		"entropy below a fifth":        {from(map[string]float64{"entropy": 0.1}), "entropy-collapse", 130, "down to 0.1 nats a token from 1"},
		"entropy above three times":    {from(map[string]float64{"entropy": 4}), "entropy-explosion", 120, "up to 3 nats a token from 1"},
		"longer and cut":               {from(map[string]float64{"completions/mean_length": 300, "completions/clipped_ratio": 0.5}), "length-explosion", 120, "33% of them are cut off"},
		"longer for nothing":           {from(map[string]float64{"completions/mean_length": 300}), "length-explosion", 130, "has not risen"},
		"equal rewards":                {from(map[string]float64{"frac_reward_zero_std": 0.95}), "no-signal", 130, "95% of the groups"},
		"criteria met in full":         {from(map[string]float64{"rubric/saturated_frac": 0.9, "rubric/saturated/polite": 1, "rubric/saturated/right": 0.5}), "saturated-rubric", 130, "met in full: polite"},
		"criteria of a part of a mix":  {from(map[string]float64{"style/rubric/saturated_frac": 0.9}), "saturated-rubric", 130, "90% of the criteria"},
		"far from the reference":       {from(map[string]float64{"kl": 2}), "kl-runaway", 110, "from 0.01 to 0.673"},
		"sampler apart":                {from(map[string]float64{"sampling/sampling_logp_difference/mean": 0.06}), "off-policy-gap", 130, "differ by 0.06"},
		"clipped":                      {from(map[string]float64{"clip_ratio/region_mean": 0.4}), "off-policy-gap", 130, "40% of the tokens are clipped"},
		"updates that change nothing":  {from(map[string]float64{"amaris/updates": 1, "amaris/ops/create": 0, "amaris/unanswered": 1, "amaris/dropped_ops": 2}), "stale-rubric", 160, "of 1 updates a step 1 had no usable answer"},
		"nothing replaced":             {from(map[string]float64{"rare/switches": 0, "rare/kept": 3}), "stale-rubric", 160, "none was replaced"},
		"the same norm":                {from(map[string]float64{"param_norm": 7, "grad_norm": 0}), "adapter-unchanged", 130, "every gradient is 0"},
		"no learning rate":             {from(map[string]float64{"param_norm": 7, "learning_rate": 0}), "adapter-unchanged", 130, "the learning rate is 0"},
		"less than a GB":               {from(map[string]float64{"perf/disk_free_gb": 0.5, "perf/checkpoint_gb": 0.01}), "disk-nearly-full", 110, "0.50 GB left"},
		"less than two checkpoints":    {from(map[string]float64{"perf/disk_free_gb": 39, "perf/checkpoint_gb": 20}), "disk-nearly-full", 110, "takes about 20.00"},
		"a judge that has become kind": {run(20, 10, func(line int) map[string]float64 { return audited(line, 0.05, 0.25, 0.3, 0.3) }), "judge-drift", 120, "by +0.25 of a credit, +0.05"},
		"judges that part":             {run(20, 10, func(line int) map[string]float64 { return audited(line, 0, 0, 0.1, 0.3) }), "judge-drift", 120, "0.30 of a credit apart, 0.10"},
	} {
		found := Diagnose(c.records)
		if len(found) != 1 {
			t.Errorf("%s: found %v, want one finding", name, found)
			continue
		}
		if f := found[0]; f.Kind != c.kind || f.Step != c.step || f.Ends || !strings.Contains(f.Text, c.text) {
			t.Errorf("%s: found %+v, want %s at step %d with %q", name, f, c.kind, c.step, c.text)
		}
	}
}

// audited has an audit in every line up to 8, and others after it.
func audited(line int, bias, laterBias, difference, later float64) map[string]float64 {
	if line > 8 {
		bias, difference = laterBias, later
	}
	return map[string]float64{"judge/audit/bias": bias, "judge/audit/difference": difference}
}

// What is just not past a threshold is nothing.
func TestNearMisses(t *testing.T) {
	for name, records := range map[string][]track.Record{
		"nothing":                     from(nil),
		"a quarter of the entropy":    from(map[string]float64{"entropy": 0.25}),
		"three times a small entropy": run(20, 10, func(line int) map[string]float64 { return map[string]float64{"entropy": 0.1 + float64(line)/50} }),
		"long with a better reward":   from(map[string]float64{"completions/mean_length": 300, "reward": 0.6}),
		"much cut from the start":     run(20, 10, func(int) map[string]float64 { return map[string]float64{"completions/clipped_ratio": 0.9} }),
		"a reward within its spread":  from(map[string]float64{"reward": 0.35}),
		"three quarters of no signal": from(map[string]float64{"frac_reward_zero_std": 0.75}),
		"a line of NaN":               from(map[string]float64{"kl": math.NaN(), "entropy": math.NaN(), "reward": math.NaN()}),
		"below zero, unknown at first": run(20, 10, func(line int) map[string]float64 {
			if line < 3 {
				return map[string]float64{"reward": math.NaN()}
			}
			return map[string]float64{"reward": -2}
		}),
		"supervised": run(20, 10, func(line int) map[string]float64 {
			return map[string]float64{"entropy": 1 / float64(1+line), "completions/mean_length": math.NaN()}
		}),
		"a rubric that changes": run(20, 10, func(line int) map[string]float64 {
			return map[string]float64{"amaris/updates": 1, "amaris/ops/create": float64(line % 2), "amaris/version": float64(line), "reward": 1 - float64(line)/20}
		}),
		"a norm that moves": run(20, 10, func(line int) map[string]float64 { return map[string]float64{"param_norm": float64(line / 2)} }),
	} {
		if found := Diagnose(records); found != nil {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

// The recorded quickstart run learns as it should.
func TestHealthyRun(t *testing.T) {
	records, err := track.ReadJSONL(filepath.Join("testdata", "quickstart.jsonl"))
	if err != nil || len(records) < 20 {
		t.Fatal(len(records), err)
	}
	if found := Diagnose(records); found != nil {
		t.Errorf("found %v", found)
	}
}

// What comes and goes within two windows is told once, what is over for longer ends and may begin again.
func TestOnsets(t *testing.T) {
	flat := map[int]bool{3: true, 4: true, 5: true, 6: true, 8: true, 9: true, 10: true, 20: true, 21: true, 22: true}
	records := run(24, 10, func(line int) map[string]float64 {
		if flat[line] {
			return map[string]float64{"frac_reward_zero_std": 1}
		}
		return map[string]float64{"frac_reward_zero_std": 0}
	})
	var got []string
	for _, f := range Diagnose(records) {
		got = append(got, strings.SplitN(f.String(), " (", 2)[0])
	}
	// Lines 3 to 5 fill a window (step 60), 8 to 10 the next one, after three free ones; 11 to 16 are six free ones.
	want := []string{"step 60: 100% of the groups have equal rewards", "step 170: no-signal is over", "step 230: 100% of the groups have equal rewards"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// What goes wrong in the second line is seen against the first.
func TestWrongAtOnce(t *testing.T) {
	found := Diagnose(run(6, 5, func(line int) map[string]float64 {
		if line == 0 {
			return nil
		}
		return map[string]float64{"entropy": 6}
	}))
	if len(found) != 1 || found[0].Kind != "entropy-explosion" || found[0].Step != 20 {
		t.Errorf("found %v, want entropy-explosion at step 20, when there is a window after the start", found)
	}
}

// A window holds the lines of ten steps where lines are short.
func TestWindowOfShortLines(t *testing.T) {
	found := Diagnose(run(12, 1, func(int) map[string]float64 { return map[string]float64{"frac_reward_zero_std": 1} }))
	if len(found) != 1 || found[0].Step != 10 {
		t.Errorf("found %v, want no-signal at step 10", found)
	}
}

// Diagnose of a beginning is the beginning of Diagnose: a run is told what its folder tells later.
func TestDiagnoseIsCausal(t *testing.T) {
	records := from(map[string]float64{"kl": 2, "entropy": 0.01, "perf/disk_free_gb": 0})
	all := Diagnose(records)
	for n := range records {
		part := Diagnose(records[:n])
		if !slices.Equal(part, all[:len(part)]) {
			t.Fatalf("after %d lines: %v, of all: %v", n, part, all)
		}
	}
	var m Monitor
	for _, r := range records {
		m.Observe(r)
	}
	var kinds []string
	for _, f := range m.Active() {
		kinds = append(kinds, f.Kind)
	}
	if want := []string{"entropy-collapse", "kl-runaway", "disk-nearly-full"}; !slices.Equal(kinds, want) {
		t.Errorf("active: %v, want %v", kinds, want)
	}
}

// Every diagnosis has its section in the documentation, and every section its diagnosis.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "health.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sections, kinds []string
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && !strings.Contains(title, " ") {
			sections = append(sections, title)
		}
	}
	for _, c := range checks() {
		kinds = append(kinds, c.kind)
	}
	slices.Sort(sections)
	slices.Sort(kinds)
	if !slices.Equal(sections, kinds) {
		t.Errorf("sections %q, diagnoses %q", sections, kinds)
	}
}
