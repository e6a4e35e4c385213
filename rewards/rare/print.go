package rare

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the report as tables for people.
func (r *Report) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%d visits of %d rubrics; in %d a criterion was saturated that could be replaced (trigger rate %s)\n",
		r.Visits, r.Rubrics, r.Triggered, r.Trigger.share())
	fmt.Fprintf(t, "%d criteria replaced, %d kept (%d proposals repeated another criterion)\n\n", r.Switches, r.Kept, r.Duplicates)
	for _, row := range []struct{ name, value string }{
		{"post-switch score", r.PostSwitchMean.score()},
		{"opens headroom", r.OpensHeadroom.share()},
		{"restores variance", r.RestoresVariance.share()},
		{"separation", r.Separation.score()},
		{"later resaturation", fmt.Sprintf("%s (%d of %d seen later)", r.Later.share(), r.Resaturated, r.SeenLater)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", row.name, row.value)
	}
	fmt.Fprint(t, "\ncompletions of\tevents\tnew mean\tnew headroom\tnew variance\told events\told full groups\told mean\told full completions\n")
	for _, p := range r.Panels {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.Name, p.Events, p.NewMean.score(), p.NewHeadroom.share(), p.NewVariance.share(),
			p.OldEvents, p.OldFullGroups.share(), p.OldMean.score(), p.OldFullCompletions.share())
	}
	return t.Flush()
}
