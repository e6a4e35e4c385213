package trainer

import (
	"math"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Loss and gradient of an episode are the sums of those of its turns, each computed by itself as a completion of one turn behind all that
// came before it: what the environment said moves nothing, and each turn has its own advantage.
func TestEpisodeIsTheSumOfItsTurns(t *testing.T) {
	for _, more := range [][]string{nil, {"beta=0.3"}} {
		tr := episodeRun(t, t.TempDir(), append([]string{"max_steps=1", "loss_type=dr_grpo"}, more...)...)
		check(t, tr.refill(t.Context()))
		whole := grpo.Rows(tr.Config.GRPO, tr.buffer.Groups)
		var turns []grpo.Row
		for _, r := range whole {
			c := r.Completion
			c.Turns = []float64{0.3, -1, 2.5}
			for i := range c.Ref { // another reference than the policy, so that the divergence has a gradient
				c.Ref[i] -= 0.01 * float32(i)
			}
			for k, s := range c.Episode.Steps {
				prompt := *r.Prompt
				prompt.Tokens = append(append([]int32(nil), r.Prompt.Tokens...), c.Tokens[:s.Start]...)
				one := &grpo.Completion{Tokens: c.Tokens[s.Start:s.End], LogP: c.LogP[s.Start:s.End], Advantage: c.Turns[k]}
				if c.Ref != nil {
					one.Ref = c.Ref[s.Start:s.End]
				}
				turns = append(turns, grpo.Row{Prompt: &prompt, Completion: one})
			}
		}
		grad := func(rows []grpo.Row) (float64, []float32) {
			tr.loss = 0
			check(t, tr.accumulate(t.Context(), rows, 1)) // on this device it compares log-probabilities with the sampler's bits, too
			g := make([]float32, tr.params.Len)
			check(t, tr.Device.Download(g, tr.params.Grad, 0))
			tr.params.ZeroGrad(tr.Device)
			return tr.loss, g
		}
		loss, a := grad(whole)
		sum, b := grad(turns) // a mean over three times as many rows
		if math.Abs(loss-3*sum) > 1e-9+1e-6*math.Abs(loss) {
			t.Errorf("%v: loss %v, of the turns %v", more, loss, 3*sum)
		}
		most, off := 0.0, 0.0
		for i := range a {
			most = math.Max(most, math.Abs(float64(a[i])))
			off = math.Max(off, math.Abs(float64(a[i]-3*b[i])))
		}
		if most == 0 || off > 1e-4*most {
			t.Errorf("%v: gradients up to %v differ by %v from the turns'", more, most, off)
		}
	}
}
