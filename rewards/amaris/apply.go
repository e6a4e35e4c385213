package amaris

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/criteria"
)

// rubric is the current set of a scope. It never changes itself; apply makes the next one. The zero rubric is that of a scope
// that has none yet.
type rubric struct {
	Set  criteria.Set `json:"set"`
	Next int          `json:"next"` // the number of the next new id is at least this, so that no id comes back
}

// first is the rubric that a scope begins with.
func first(scope string, version int, list []criteria.Criterion) (rubric, error) {
	set, err := criteria.NewSet(scope, version, list)
	return rubric{Set: set}, err
}

// apply makes the next rubric by those of ops that are valid, and says why the others were dropped. Of two operations that
// want the same of a criterion the earlier one counts; if the whole would be too large, empty, or have nothing to earn,
// the latest operations that make it so are dropped. Without a valid operation the rubric stays as it is.
func (r rubric) apply(ops []Op, step int, l limits) (next rubric, applied []Op, dropped []Dropped, err error) {
	valid, dropped := r.sort(ops, l)
	for len(valid) > 0 {
		next, applied = r.build(valid, step)
		culprit, why := fault(next.Set, valid, l)
		if why == "" {
			next.Set, err = criteria.NewSet(r.scope(), r.Set.Version()+1, next.Set.List())
			return next, applied, dropped, err
		}
		dropped = append(dropped, Dropped{valid[culprit], why})
		valid = slices.Delete(valid, culprit, culprit+1)
	}
	return r, nil, dropped, nil
}

func (r rubric) scope() string {
	if r.Set.Len() == 0 {
		return criteria.Global // only a global rubric is ever made from nothing
	}
	return r.Set.Scope()
}

// sort looks at every operation by itself and beside those before it.
func (r rubric) sort(ops []Op, l limits) (valid []Op, dropped []Dropped) {
	taken := map[string]string{} // claim -> kind of the operation that has it
	for _, op := range ops {
		why := ""
		if err := op.check(r.Set, l); err != nil {
			why = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		for _, claim := range op.claims() {
			if kind := taken[claim]; kind != "" && why == "" {
				why = fmt.Sprintf("the %s is subject of a %s already", claim, kind)
			}
		}
		if why == "" {
			why = r.duplicate(op, valid)
		}
		if why != "" {
			dropped = append(dropped, Dropped{op, why})
			continue
		}
		for _, claim := range op.claims() {
			taken[claim] = op.Kind
		}
		valid = append(valid, op)
	}
	return valid, dropped
}

// duplicate says which text of op the rubric has elsewhere, or gets from an operation before.
func (r rubric) duplicate(op Op, before []Op) string {
	for _, text := range op.written() {
		for _, c := range r.Set.All() {
			if sameText(c.Text, text) && !slices.Contains(op.Targets, c.ID) {
				return fmt.Sprintf("%s has the same text", c.ID)
			}
		}
		for _, o := range before {
			if slices.ContainsFunc(o.written(), func(t string) bool { return sameText(t, text) }) {
				return fmt.Sprintf("a %s has the same text", o.Kind)
			}
		}
	}
	return ""
}

// build applies valid operations. The result's set may still be at fault as a whole, so it is not a Set of its own yet.
func (r rubric) build(ops []Op, step int) (rubric, []Op) {
	list, applied := r.Set.List(), slices.Clone(ops)
	ids := newNamer(r)
	for i := range applied {
		op := &applied[i]
		place := func(id string) int {
			return slices.IndexFunc(list, func(c criteria.Criterion) bool { return c.ID == id })
		}
		op.Made = slices.Clone(op.Made)
		for k := range op.Made {
			op.Made[k].ID, op.Made[k].Step, op.Made[k].Origin = ids.next(), step, strings.Join(op.Targets, "+")
		}
		switch op.Kind {
		case OpUpdate:
			list[place(op.Targets[0])].Text = op.Text
		case OpReweight:
			c := &list[place(op.Targets[0])]
			before := c.Weight
			c.Weight, op.Before = op.Weight, &before
		case OpCreate:
			list = append(list, op.Made...)
		default: // delete, merge, split: what is made takes the place of the first that goes
			at := place(op.Targets[0])
			for _, id := range op.Targets {
				at = min(at, place(id))
			}
			list = slices.Insert(list, at, op.Made...)
			list = slices.DeleteFunc(list, func(c criteria.Criterion) bool { return slices.Contains(op.Targets, c.ID) })
		}
	}
	return rubric{loose(list), ids.number}, applied
}

// loose is a Set of criteria that may be no Set: an empty one then.
func loose(list []criteria.Criterion) criteria.Set {
	set, _ := criteria.NewSet("", 0, list)
	return set
}

// fault says why what ops made is no rubric, and which operation is to be dropped for it.
func fault(set criteria.Set, ops []Op, l limits) (culprit int, why string) {
	last := func(is func(Op) bool) int {
		for i := len(ops) - 1; i >= 0; i-- {
			if is(ops[i]) {
				return i
			}
		}
		return len(ops) - 1
	}
	switch {
	case set.Len() > l.count:
		return last(func(o Op) bool { return o.Kind == OpCreate || o.Kind == OpSplit }),
			fmt.Sprintf("the rubric would have %d criteria, at most %d are allowed", set.Len(), l.count)
	case set.Len() == 0:
		return last(func(o Op) bool { return o.Kind != OpCreate && o.Kind != OpUpdate }),
			"the rubric would be empty, or have no criterion with a weight above 0"
	}
	return 0, ""
}

// idForm is an id that ends in a number.
var idForm = regexp.MustCompile(`^(.*?)([0-9]{1,9})$`)

// namer makes ids: the letters of the last criterion whose id ends in a number, and the number after the highest so far.
type namer struct {
	prefix string
	number int
	taken  map[string]bool
}

func newNamer(r rubric) *namer {
	n := &namer{"c", max(r.Next, 1), map[string]bool{}}
	for _, c := range r.Set.All() {
		n.taken[c.ID] = true
		if m := idForm.FindStringSubmatch(c.ID); m != nil {
			number, _ := strconv.Atoi(m[2]) // at most nine digits
			n.prefix, n.number = m[1], max(n.number, number+1)
		}
	}
	return n
}

func (n *namer) next() string {
	for {
		id := fmt.Sprintf("%s%d", n.prefix, n.number)
		if len(id) > 64 {
			n.prefix = "c"
			continue
		}
		n.number++
		if !n.taken[id] {
			n.taken[id] = true
			return id
		}
	}
}
