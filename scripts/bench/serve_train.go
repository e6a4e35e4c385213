package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/rewards"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/track"
)

// dataFile is data.json.
type dataFile struct {
	Prompts   []grpo.Prompt
	Sequences [][]int32
}

func readData(path string) (d dataFile, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, err
	}
	for i := range d.Prompts {
		d.Prompts[i].ID = fmt.Sprint(i)
	}
	return d, nil
}

// thirds is the reward: the share of a completion's ids that 3 divides. Every completion has to be of full length.
type thirds struct{ length int }

// Score implements rewards.Provider.
func (p thirds) Score(_ context.Context, _ int, groups []grpo.Group) ([]rewards.Score, error) {
	var scores []rewards.Score
	for _, g := range groups {
		for _, c := range g.Completions {
			if len(c.Tokens) != p.length {
				return nil, fmt.Errorf("a completion has %d tokens, not %d", len(c.Tokens), p.length)
			}
			n := 0
			for _, id := range c.Tokens {
				if id%3 == 0 {
					n++
				}
			}
			scores = append(scores, rewards.Score{Value: float64(n) / float64(p.length)})
		}
	}
	return scores, nil
}

// grpoStep is a run of one step in a folder of its own; the figures are those of the run's log.
func (e *engine) grpoStep(ctx context.Context, r request) (values, error) {
	dir, err := os.MkdirTemp("", "rubicon-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := *e.cfg
	c.OutputDir = dir
	c.GRPO.Beta, c.GRPO.NumGenerations = 0.04, r.Completions
	c.Optim.PerDeviceTrainBatchSize, c.Optim.MaxSteps = r.Prompts*r.Completions, 1
	c.Rollout.MaxCompletionLength = r.New
	data, err := readData(e.Data)
	if err != nil {
		return nil, err
	}
	tok, err := token.Load(e.Model)
	if err != nil {
		return nil, err
	}
	parts := trainer.Parts{Config: &c, Device: e.dev, Model: e.model, Adapter: adapterName, Tokenizer: tok,
		Console: &track.Console{W: io.Discard, Now: time.Now}, Now: time.Now}
	t, err := trainer.New(parts, trainer.Task{Prompts: data.Prompts, Provider: thirds{r.New}, Name: "thirds",
		Reference: trainer.Reference{Model: e.model}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(t.Run(ctx), t.Close()); err != nil {
		return nil, err
	}
	return logged(filepath.Join(dir, "metrics.jsonl"))
}

// logged are the seconds of the step that a log has.
func logged(path string) (values, error) {
	records, err := track.ReadJSONL(path)
	if err != nil {
		return nil, err
	}
	if len(records) != 1 {
		return nil, fmt.Errorf("%s has %d records, not 1", path, len(records))
	}
	m := records[0].Values
	v := values{"seconds": m["step_time"], "generate": m["timing_s/gen"], "reference": m["timing_s/ref"], "learn": m["timing_s/update_actor"]}
	v["rest"] = v["seconds"] - v["generate"] - v["reference"] - v["learn"]
	return v, nil
}

// gradient is one pass over f and back, of the mean negative log-probability of its scored tokens.
func (e *engine) gradient(f *policy.Forest) (values, []float32, error) {
	params, err := e.model.Params(adapterName)
	if err != nil {
		return nil, nil, err
	}
	params.ZeroGrad(e.dev)
	var pass *policy.Pass
	forward, err := clock(func() (err error) {
		pass, err = e.model.Forward(f, policy.ForwardOptions{
			Adapter: adapterName, Temperature: 1, Grad: true, KeepAll: !e.cfg.Model.GradientCheckpointing,
		})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	logp := pass.Output.LogP
	d := make([]float32, len(logp))
	for i := range d {
		d[i] = -1 / float32(len(d))
	}
	backward, err := clock(func() error {
		return errors.Join(pass.Backward(policy.Gradients{LogP: d}), e.dev.Sync())
	})
	return values{"seconds": forward + backward, "forward": forward, "backward": backward}, logp, err
}

// segment is a run of tokens whose last so many are scored.
func segment(parent int, tokens []int32, scored int) policy.Segment {
	s := policy.Segment{Parent: parent, Tokens: tokens}
	if scored > 0 {
		s.Score = make([]bool, len(tokens))
		for i := len(tokens) - scored; i < len(tokens); i++ {
			s.Score[i] = true
		}
	}
	return s
}

// apart is a forest of sequences that share nothing.
func apart(sequences [][]int32, scored int) *policy.Forest {
	f := &policy.Forest{}
	for _, s := range sequences {
		f.Segments = append(f.Segments, segment(policy.Root, s, scored))
	}
	return f
}

func (e *engine) synthetic(seed, n int) []int32 {
	return synthetic(uint32(seed), n, e.model.Config().Vocab)
}

func (e *engine) fwdBwd(_ context.Context, r request) (values, error) {
	var sequences [][]int32
	for i := range r.Sequences {
		sequences = append(sequences, e.synthetic(i+1, r.Length))
	}
	v, _, err := e.gradient(apart(sequences, r.Scored))
	return v, err
}

func (e *engine) sharedPrompt(_ context.Context, r request) (values, error) {
	prompt := e.synthetic(1, r.Prompt)
	f := &policy.Forest{}
	if e.Share {
		f.Segments = []policy.Segment{segment(policy.Root, prompt, 0)}
	}
	for i := range r.Completions {
		tokens := e.synthetic(2+i, r.New)
		if e.Share {
			f.Segments = append(f.Segments, segment(0, tokens, r.New))
		} else {
			f.Segments = append(f.Segments, segment(policy.Root, append(append([]int32{}, prompt...), tokens...), r.New))
		}
	}
	v, _, err := e.gradient(f)
	return v, err
}

// accuracy is the distance of the adapter's gradient and of the log-probabilities from those in float64.
func (e *engine) accuracy(_ context.Context, r request) (values, error) {
	data, err := readData(e.Data)
	if err != nil {
		return nil, err
	}
	want, offsets, err := readTruth(e.Reference)
	if err != nil {
		return nil, err
	}
	_, logp, err := e.gradient(apart(data.Sequences, r.Scored))
	if err != nil {
		return nil, err
	}
	p, err := e.model.Params(adapterName)
	if err != nil {
		return nil, err
	}
	grad := make([]float32, p.Len)
	if err := e.dev.Download(grad, p.Grad, 0); err != nil {
		return nil, err
	}
	got := make([]float64, len(want)) // in the truth's order
	for i, x := range logp {
		got[i] = float64(x)
	}
	for i, name := range p.Names {
		at, ok := offsets[name]
		if !ok {
			return nil, fmt.Errorf("%s is not in %s", name, e.Reference)
		}
		end := p.Len
		if i+1 < len(p.Offsets) {
			end = p.Offsets[i+1]
		}
		for j, x := range grad[p.Offsets[i]:end] {
			got[at+j] = float64(x)
		}
	}
	n := len(logp)
	v := values{}
	v["logp_rms"], v["logp_max"] = distance(got[:n], want[:n])
	v["grad_error"], v["grad_cosine_gap"] = relative(got[n:], want[n:])
	return v, nil
}

// readTruth reads truth.f64, and from truth.json where each tensor begins in it.
func readTruth(path string) (data []float64, offsets map[string]int, err error) {
	index := struct{ Offsets map[string]int }{}
	b, err := os.ReadFile(path + ".json")
	if err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, nil, err
	}
	if b, err = os.ReadFile(path + ".f64"); err != nil {
		return nil, nil, err
	}
	data = make([]float64, len(b)/8)
	for i := range data {
		data[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return data, index.Offsets, nil
}
