package rare

import (
	"encoding/json"
	"fmt"
	"math"
)

// Figure is a number of a report; NaN where there is nothing to compute it from, which is null in JSON.
type Figure float64

// MarshalJSON implements json.Marshaler.
func (f Figure) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// share is how a share is shown to people.
func (f Figure) share() string { return f.format("%.1f %%", 100) }

// score is how a mean credit is shown to people.
func (f Figure) score() string { return f.format("%.3f", 1) }

func (f Figure) format(form string, scale float64) string {
	if math.IsNaN(float64(f)) {
		return "-"
	}
	return fmt.Sprintf(form, scale*float64(f))
}

// figures sums up what criteria gave, each on the completions of one visit. All means are over criteria.
type figures struct {
	n                                              float64
	sum, open, differ, apart, full, fullCompletion float64
}

// add counts one criterion; sizes is the number of completions of each group, scored or not.
func (f *figures) add(e evidence, sizes []int) {
	f.n++
	f.sum += e.mean()
	f.apart += e.separation()
	f.open += count(e.headroom())
	f.differ += count(e.varies())
	f.full += count(e.full(sizes))
	f.fullCompletion += e.fullShare()
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (f figures) mean() Figure       { return Figure(f.sum / f.n) }
func (f figures) headroom() Figure   { return Figure(f.open / f.n) }
func (f figures) variance() Figure   { return Figure(f.differ / f.n) }
func (f figures) separation() Figure { return Figure(f.apart / f.n) }
func (f figures) fullGroups() Figure { return Figure(f.full / f.n) }
func (f figures) fullShare() Figure  { return Figure(f.fullCompletion / f.n) }
