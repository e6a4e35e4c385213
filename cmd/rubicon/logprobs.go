package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// modelFlags are what the commands take that use a model without a configuration file.
type modelFlags struct{ model, adapter, dtype string }

func (f *modelFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.model, "model", "", "Hugging Face folder of the model, a GGUF file, ORG/NAME that rubicon pull fetched, or embedded:quickstart")
	cmd.Flags().StringVar(&f.adapter, "adapter", "", "PEFT folder of an adapter")
	cmd.Flags().StringVar(&f.dtype, "dtype", "auto", "how weights are kept: auto (as stored), float32, bfloat16, int8, int4")
	cmd.MarkFlagRequired("model")
}

// loaded is a model with its tokenizer, ready to use.
type loaded struct {
	dev     device.Device
	model   *policy.Model
	adapter string
	tok     *token.Tokenizer
}

func (f *modelFlags) load(ctx context.Context) (*loaded, error) {
	files, err := openFiles(f.model)
	if err != nil {
		return nil, err
	}
	defer files.close()
	l := &loaded{}
	if l.tok, err = files.tokenizer(); err != nil {
		return nil, err
	}
	if l.dev, err = newDevice(0, false); err != nil {
		return nil, err
	}
	if l.model, l.adapter, err = loadFrozen(ctx, l.dev, *f); err != nil {
		return nil, errors.Join(err, l.dev.Close())
	}
	return l, nil
}

// loadFrozen loads a model that is not trained, with its adapter if it has one.
func loadFrozen(ctx context.Context, dev device.Device, f modelFlags) (m *policy.Model, adapter string, err error) {
	files, err := openFiles(f.model)
	if err != nil {
		return nil, "", err
	}
	defer closing(&err, files.close)
	if m, err = files.load(ctx, dev, policy.LoadOptions{DType: f.dtype}); err != nil {
		return nil, "", fmt.Errorf("load model %s: %w", f.model, err)
	}
	if f.adapter == "" {
		return m, "", nil
	}
	if err := loadAdapter(m, f.adapter); err != nil {
		return nil, "", errors.Join(err, m.Close())
	}
	return m, adapterName, nil
}

func (l *loaded) close() {
	l.model.Close()
	l.dev.Close()
}

type logprobsQuery struct {
	IDs  []int32 `json:"ids"`
	Text *string `json:"text"`
}

// logprobsReply has an entry per token; the first, which has nothing before it, is null.
type logprobsReply struct {
	LogProbs []*float32 `json:"logprobs"`
	Entropy  []*float32 `json:"entropy"`
}

func logprobsCommand() *cobra.Command {
	var f modelFlags
	var temperature float32
	cmd := &cobra.Command{
		Use:   "logprobs --model DIR",
		Short: `Log-probabilities of tokens: {"ids"} or {"text"} -> {"logprobs", "entropy"}, one JSON object a line`,
		Long: `Reads JSON lines with "ids", or with "text" (encoded without special tokens added, added tokens matched), and answers each
with the log-probability of every token given those before it and the entropy of the distribution that it was drawn
from, in nats; the first entry is null.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if temperature <= 0 {
				return fmt.Errorf("--temperature must be above 0, not %v", temperature)
			}
			l, err := f.load(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			return filter(cmd.InOrStdin(), cmd.OutOrStdout(), func(q logprobsQuery) (logprobsReply, error) {
				return l.logprobs(q, temperature)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().Float32Var(&temperature, "temperature", 1, "logits are divided by it")
	return cmd
}

func (l *loaded) logprobs(q logprobsQuery, temperature float32) (logprobsReply, error) {
	if (q.Text == nil) == (q.IDs == nil) {
		return logprobsReply{}, fmt.Errorf(`give either "ids" or "text"`)
	}
	ids := q.IDs
	if q.Text != nil {
		ids = l.tok.Encode(*q.Text, token.EncodeOptions{})
	}
	r := logprobsReply{make([]*float32, len(ids)), make([]*float32, len(ids))}
	if len(ids) == 0 {
		return r, nil
	}
	score := make([]bool, len(ids))
	for i := range score {
		score[i] = i > 0
	}
	pass, err := l.model.Forward(&policy.Forest{Segments: []policy.Segment{{Parent: policy.Root, Tokens: ids, Score: score}}},
		policy.ForwardOptions{Adapter: l.adapter, Temperature: temperature, Entropy: true})
	if err != nil {
		return r, err
	}
	defer pass.Release()
	for i := range len(ids) - 1 {
		r.LogProbs[i+1], r.Entropy[i+1] = &pass.Output.LogP[i], &pass.Output.Entropy[i]
	}
	return r, nil
}
