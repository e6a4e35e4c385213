package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// A float64 tells any two decimals of maxDigits digits apart.
const (
	maxDigits   = 15
	maxFraction = 6
)

// number is the decimals within a schema's bounds that have up to places digits behind the point.
func (a *automaton) number(s *schema, places int) *state {
	var out []*state
	for whole := 1; whole <= maxDigits; whole++ {
		fraction := min(places, maxDigits-whole)
		r := span{whole: whole, fraction: fraction}
		low, high := r.inside(s.low, false), r.inside(s.high, true)
		out = append(out, r.positive(a, low, high))
		if low != nil {
			low = new(big.Int).Neg(low)
		}
		if high != nil {
			high = new(big.Int).Neg(high)
		}
		if high == nil || high.Sign() <= 0 { // there is no -0
			high = big.NewInt(1)
		}
		out = append(out, a.seq(a.text("-"), r.positive(a, high, low)))
	}
	return a.alt(out...)
}

// span is the decimals with whole digits before the point, the first of which is 0 only if it is alone, and up to fraction
// behind it. They are counted in units of the last digit.
type span struct{ whole, fraction int }

// inside is the last unit on the inner side of a bound, which is an upper or a lower one; nil: there is no bound.
func (r span) inside(b *bound, upper bool) *big.Int {
	if b == nil {
		return nil
	}
	x := new(big.Rat).Mul(b.at, new(big.Rat).SetInt(power(r.fraction)))
	unit := new(big.Int).Div(x.Num(), x.Denom()) // rounded down
	switch exact := x.IsInt(); {
	case upper && exact && b.open:
		unit.Sub(unit, big.NewInt(1))
	case !upper && (!exact || b.open):
		unit.Add(unit, big.NewInt(1))
	}
	return unit
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// positive is the decimals of r from low to high units; nil: as far as r goes.
func (r span) positive(a *automaton, low, high *big.Int) *state {
	first, last := new(big.Int), power(r.whole+r.fraction)
	if r.whole > 1 {
		first = power(r.whole - 1 + r.fraction)
	}
	last.Sub(last, big.NewInt(1))
	if low != nil && low.Cmp(first) > 0 {
		first = low
	}
	if high != nil && high.Cmp(last) < 0 {
		last = high
	}
	if first.Cmp(last) > 0 {
		return a.none
	}
	d := digits{a: a, whole: r.whole}
	d.low = fmt.Sprintf("%0*d", r.whole+r.fraction, first)
	d.high = fmt.Sprintf("%0*d", r.whole+r.fraction, last)
	return d.from(0, true, true)
}

// digits writes a decimal between two, digit by digit.
type digits struct {
	a         *automaton
	whole     int
	low, high string
}

// from is what may follow i digits. atLow and atHigh tell whether those are the first of low and high.
func (d *digits) from(i int, atLow, atHigh bool) *state {
	a := d.a
	if i == len(d.low) {
		return a.empty
	}
	if i < d.whole {
		return d.digit(i, atLow, atHigh)
	}
	more, end := d.digit(i, atLow, atHigh), a.empty
	if i == d.whole {
		more = a.seq(a.text("."), more)
	}
	if atLow && strings.Trim(d.low[i:], "0") != "" { // digits that are left out are zeros
		end = a.none
	}
	return a.alt(more, end)
}

// digit is from, with at least one more digit.
func (d *digits) digit(i int, atLow, atHigh bool) *state {
	a, low, high := d.a, byte('0'), byte('9')
	if atLow {
		low = d.low[i]
	}
	if atHigh {
		high = d.high[i]
	}
	if low == high {
		return a.seq(a.one(between(low, low)), d.from(i+1, atLow, atHigh))
	}
	var out []*state
	if atLow {
		out = append(out, a.seq(a.one(between(low, low)), d.from(i+1, true, false)))
		low++
	}
	if atHigh {
		out = append(out, a.seq(a.one(between(high, high)), d.from(i+1, false, true)))
		high--
	}
	if low <= high {
		out = append(out, a.seq(a.one(between(low, high)), d.from(i+1, false, false)))
	}
	return a.alt(out...)
}
