package amaris

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Preference is the paper's Table 15 for two rubrics, with what shows whether it is more than chance and the judge's liking for
// a place. Wins are of rubric A over rubric B.
type Preference struct {
	A           string      `json:"a"`
	B           string      `json:"b"`
	Repetitions int         `json:"repetitions"` // with usable answers in both orders
	Unanswered  int         `json:"unanswered"`  // repetitions without
	Dimensions  []Dimension `json:"dimensions"`  // the six respects, and at the end the choice
}

// choice is the name of the last dimension: which rubric the judge would take.
const choice = "choice"

// Dimension is one respect. A repetition is won by the rubric whose marks, of both orders together, are higher; the choice by the
// one that is chosen in both orders.
type Dimension struct {
	Name string `json:"name"`
	A    Figure `json:"a"` // mean mark, 1 to 10; of the choice: share of the answers that choose it
	B    Figure `json:"b"`

	Wins   int    `json:"wins"`
	Ties   int    `json:"ties"`
	Losses int    `json:"losses"`
	P      Figure `json:"p"` // exact sign test of wins against losses, two-sided; NaN: there are none

	Flips  int `json:"flips"`  // repetitions in which each order prefers another rubric
	First  int `json:"first"`  // answers that prefer the rubric that is shown first
	Second int `json:"second"` // and second
}

// count makes the table of what the judge said.
func count(looks []look) (Preference, error) {
	p := Preference{}
	var whole []look
	for _, l := range looks {
		if l.aFirst == nil || l.aSecond == nil {
			p.Unanswered++
			continue
		}
		whole = append(whole, l)
	}
	if p.Repetitions = len(whole); p.Repetitions == 0 {
		return p, errors.New("the judge gave no usable answer in both orders: try another model, or a higher judge.max_tokens")
	}
	for _, name := range append(qualities(), choice) {
		d := Dimension{Name: name}
		for _, l := range whole {
			d.add(l)
		}
		d.A, d.B = d.A/Figure(2*len(whole)), d.B/Figure(2*len(whole))
		d.P = signTest(d.Wins, d.Losses)
		p.Dimensions = append(p.Dimensions, d)
	}
	return p, nil
}

// marks are those of the rubric at each place.
func (o *opinion) marks(name string) (first, second int) {
	switch {
	case name != choice:
		return o.First[name], o.Second[name]
	case o.Best == "first":
		return 1, 0
	}
	return 0, 1
}

// add counts a repetition; A and B are sums so far.
func (d *Dimension) add(l look) {
	a1, b1 := l.aFirst.marks(d.Name)
	b2, a2 := l.aSecond.marks(d.Name)
	d.A += Figure(a1 + a2)
	d.B += Figure(b1 + b2)
	switch by := a1 + a2 - b1 - b2; {
	case by > 0:
		d.Wins++
	case by < 0:
		d.Losses++
	default:
		d.Ties++
	}
	if (a1-b1)*(a2-b2) < 0 {
		d.Flips++
	}
	for _, by := range []int{a1 - b1, b2 - a2} {
		switch {
		case by > 0:
			d.First++
		case by < 0:
			d.Second++
		}
	}
}

// signTest is the probability that of wins+losses throws of a fair coin a side comes at most min(wins, losses) times.
func signTest(wins, losses int) Figure {
	n := wins + losses
	if n == 0 {
		return unknown()
	}
	term, sum := math.Pow(0.5, float64(n)), 0.0 // of n over i, divided by 2^n
	for i := range min(wins, losses) + 1 {
		sum += term
		term *= float64(n-i) / float64(i+1)
	}
	return Figure(min(1, 2*sum))
}

// Print writes the preference as a Markdown table.
func (p Preference) Print(w io.Writer) error {
	fmt.Fprintf(w, "A: %s\nB: %s\n%d repetitions, each in both orders", p.A, p.B, p.Repetitions)
	if p.Unanswered > 0 {
		fmt.Fprintf(w, "; %d more without a usable answer", p.Unanswered)
	}
	fmt.Fprint(w, "\n\n")
	var rows [][]string
	for _, d := range p.Dimensions {
		rows = append(rows, []string{
			d.Name, d.A.String(), d.B.String(), fmt.Sprint(d.Wins), fmt.Sprint(d.Ties), fmt.Sprint(d.Losses), d.P.String(),
			fmt.Sprint(d.Flips), fmt.Sprint(d.First), fmt.Sprint(d.Second),
		})
	}
	return table(w, []string{"", "A", "B", "A wins", "ties", "B wins", "p", "flips", "for the first", "for the second"}, rows)
}
