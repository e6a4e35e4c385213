package trainer

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// A clock that jumps by years, forwards and backwards, or stands still changes nothing but what is measured, and no metric is then lost: a run
// ends with the same weights and samples.
func TestClockJumps(t *testing.T) {
	run := func(now func() time.Time) (weights []float32, values []map[string]float64) {
		dir := t.TempDir()
		p := parts(t, "num_generations=2", "per_device_train_batch_size=4", "max_steps=3", "save_steps=1", "output_dir="+dir)
		p.Now = now
		p.Console.Now = now
		tr := grpoRun(t, p, &parityReward{})
		check(t, tr.Run(t.Context()))
		params, err := p.Model.Params("policy")
		check(t, err)
		weights, err = params.Download(p.Device)
		check(t, err)
		records, err := track.ReadJSONL(filepath.Join(dir, "metrics.jsonl"))
		check(t, err)
		for _, r := range records {
			values = append(values, r.Values)
		}
		return weights, values
	}
	calm, want := run(func() time.Time { return time.Unix(0, 0) })
	reads := int64(0)
	jumpy, got := run(func() time.Time {
		reads++
		return time.Unix(0, 0).AddDate(int(reads*reads%7-3)*10, 0, 0)
	})
	if !slices.Equal(calm, jumpy) {
		t.Error("the weights depend on the clock")
	}
	for i := range want {
		for name := range want[i] { // rates are left out where no time has passed
			if _, there := got[i][name]; !there {
				t.Errorf("line %d lacks %s", i+1, name)
			}
		}
		for name, x := range got[i] {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("line %d: %s is %v", i+1, name, x)
			}
		}
	}
}
