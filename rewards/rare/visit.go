package rare

import (
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/criteria"
	"github.com/rubicon-rl/rubicon/rewards/internal/scoring"
)

// visit is one step's look at a rubric: the group that it scores, or all groups of its task.
type visit struct {
	scope  string
	groups []grpo.Group
	at     []int  // index of each group among all of the step
	start  *state // of the rubric before the step; nil: it is a first one
	set    criteria.Set
	last   bool // no later visit of the step has the same rubric; this one's persists

	verdicts [][]scoring.Verdict // group -> completion, by set
	retired  [][]scoring.Verdict // the same by start.Retired; nil: not asked

	asked     []int      // places of the saturated criteria that may be replaced
	proposals []proposal // for some of these, by place
	tried     [][]scoring.Verdict
	silence   string    // why there are no proposals
	rejected  []refusal // proposals that repeat another criterion

	switches []swap
	next     criteria.Set        // the rubric after the visit
	final    [][]scoring.Verdict // the verdicts with the replacements' credits in place
}

// proposal is a criterion that could stand at a saturated one's place. Its credits are column try of visit.tried.
type proposal struct {
	place     int
	criterion criteria.Criterion
	why       string
	try       int
}

// refusal is a proposal that repeats a criterion.
type refusal struct {
	place int
	text  string
	like  string // id of that criterion
}

// swap is a replacement that was made.
type swap struct {
	place    int
	old, new criteria.Criterion
	why      string
	credits  evidence // of new, on the completions that old was full on
}

// visits sorts a step's groups by rubric.
func (p *Provider) visits(step int, groups []grpo.Group) ([]*visit, error) {
	var visits []*visit
	latest := map[string]*visit{}
	for i, g := range groups {
		scope, err := p.scope(g.Prompt)
		if err != nil {
			return nil, place(err, g.Prompt.ID)
		}
		v := latest[scope]
		if v == nil || p.options.Mode != modeTask {
			if v != nil {
				v.last = false
			}
			if v, err = p.open(step, scope, g.Prompt); err != nil {
				return nil, place(err, g.Prompt.ID)
			}
			visits, latest[scope] = append(visits, v), v
		}
		v.groups, v.at = append(v.groups, g), append(v.at, i)
	}
	for _, v := range visits {
		v.verdicts = make([][]scoring.Verdict, len(v.groups))
		v.retired = make([][]scoring.Verdict, len(v.groups))
		v.final = v.verdicts
	}
	return visits, nil
}

// open begins a visit with the rubric as it was before the step.
func (p *Provider) open(step int, scope string, row *grpo.Prompt) (*visit, error) {
	p.mu.Lock()
	start := p.states.before(step, scope)
	p.mu.Unlock()
	v := &visit{scope: scope, start: start, last: true}
	if start != nil {
		v.set = start.Set
	} else {
		list, err := p.rubrics.first(row)
		if err != nil {
			return nil, err
		}
		if v.set, err = criteria.NewSet(scope, 1, list); err != nil {
			return nil, err
		}
	}
	v.next = v.set
	return v, nil
}

// sizes is the number of completions in each group.
func (v *visit) sizes() []int {
	n := make([]int, len(v.groups))
	for i, g := range v.groups {
		n[i] = len(g.Completions)
	}
	return n
}

// saturated tells whether all current completions, every one scored, have full credit on criterion k.
func (v *visit) saturated(k int) bool { return column(v.verdicts, k).full(v.sizes()) }

// saturate notes which saturated criteria may be replaced now. Bounds are spent in the order of groups and places.
func (p *Provider) saturate(visits []*visit) {
	left := p.options.MaxPerStep
	for _, v := range visits {
		for k, c := range v.set.All() {
			bounded := p.options.MaxPerStep > 0 && left == 0
			if c.Anchor || c.Weight <= 0 || bounded || !p.mayReplace(v, k) || !v.saturated(k) {
				continue
			}
			v.asked = append(v.asked, k)
			left--
		}
	}
}

// mayReplace tells whether the bounds of one rubric let it switch place k, beside those that it is asked about.
func (p *Provider) mayReplace(v *visit, k int) bool {
	o, s := p.options, v.start
	if o.MaxPerVisit > 0 && len(v.asked) >= o.MaxPerVisit {
		return false
	}
	if o.MaxPerPrompt > 0 && len(s.retired())+len(v.asked) >= o.MaxPerPrompt {
		return false
	}
	return s.rested(k) >= o.MinVisits
}

// known are all criteria that the rubric has or ever had.
func (v *visit) known() []criteria.Criterion {
	return append(v.set.List(), v.start.retired()...)
}

// proposed are the criteria of the proposals.
func (v *visit) proposed() []criteria.Criterion {
	list := make([]criteria.Criterion, len(v.proposals))
	for i, p := range v.proposals {
		list[i] = p.criterion
	}
	return list
}

// replace puts the proposals into the rubric, and their credits beside those of all other criteria, which stay as they
// are. If they could not be scored on some completion, nothing changes.
func (v *visit) replace(step int) {
	if len(v.proposals) == 0 {
		return
	}
	if why := unscorable(v.tried); why != "" {
		v.silence = "the replacements could not be scored: " + why
		return
	}
	list := v.set.List()
	var switches []swap
	for _, p := range v.proposals {
		old, c := list[p.place], p.criterion
		c.Weight, c.Category, c.Anchor, c.Origin, c.Step = old.Weight, old.Category, false, old.ID, step
		list[p.place] = c
		switches = append(switches, swap{p.place, old, c, p.why, column(v.tried, p.try)})
	}
	next, err := v.set.With(list)
	if err != nil {
		v.silence = "the replacements make no rubric: " + err.Error()
		return
	}
	v.next, v.switches, v.final = next, switches, v.merged()
}

// unscorable says why some verdict is none; "" if all are.
func unscorable(verdicts [][]scoring.Verdict) string {
	for _, list := range verdicts {
		for _, v := range list {
			if v.Unscorable != "" {
				return v.Unscorable
			}
		}
	}
	return ""
}

// merged are the verdicts with the replacements' credits and reasons at their places.
func (v *visit) merged() [][]scoring.Verdict {
	out := make([][]scoring.Verdict, len(v.verdicts))
	for g, verdicts := range v.verdicts {
		out[g] = make([]scoring.Verdict, len(verdicts))
		for i, verdict := range verdicts {
			verdict.Credits = append([]float64{}, verdict.Credits...)
			verdict.Reasons = append([]string{}, verdict.Reasons...)
			for _, p := range v.proposals {
				verdict.Credits[p.place] = v.tried[g][i].Credits[p.try]
				verdict.Reasons[p.place] = v.tried[g][i].Reasons[p.try]
			}
			out[g][i] = verdict
		}
	}
	return out
}
