package board

import (
	"encoding/json"
	"math"

	"github.com/rubicon-rl/rubicon/trainer/track"
)

// number is written as null if it is not finite.
type number float64

// MarshalJSON writes the number, or null.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return []byte("null"), nil
}

// series is one metric over the buckets of a table.
type series struct {
	Low  []number `json:"low"`
	Mean []number `json:"mean"`
	High []number `json:"high"`
}

// table is records in at most n buckets of consecutive ones: the last step of each, and each metric's least, mean and
// largest value in it. A metric without a finite value in a bucket is null there. With as many buckets as records all
// three are the record's value.
type table struct {
	Steps  []int              `json:"steps"`
	Series map[string]*series `json:"series"`
}

func tabulate(records []track.Record, n int) table {
	n = min(n, len(records))
	t := table{Steps: make([]int, n), Series: map[string]*series{}}
	for i := range n {
		from, to := i*len(records)/n, (i+1)*len(records)/n
		t.Steps[i] = records[to-1].Step
		count := map[string]int{}
		for _, r := range records[from:to] {
			for name, v := range r.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					continue
				}
				s := t.of(name)
				if count[name]++; count[name] == 1 {
					s.Low[i], s.Mean[i], s.High[i] = number(v), number(v), number(v)
					continue
				}
				s.Low[i], s.High[i] = min(s.Low[i], number(v)), max(s.High[i], number(v))
				s.Mean[i] += (number(v) - s.Mean[i]) / number(count[name])
			}
		}
	}
	return t
}

// of returns the series of a name, at first without a value.
func (t table) of(name string) *series {
	s := t.Series[name]
	if s == nil {
		s = &series{missing(len(t.Steps)), missing(len(t.Steps)), missing(len(t.Steps))}
		t.Series[name] = s
	}
	return s
}

func missing(n int) []number {
	v := make([]number, n)
	for i := range v {
		v[i] = number(math.NaN())
	}
	return v
}
