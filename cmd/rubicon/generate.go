package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

type generateQuery struct {
	Prompt   *string         `json:"prompt"`
	Messages []token.Message `json:"messages"`
}

type generateReply struct {
	Completions []completion `json:"completions"`
}

type completion struct {
	Text     string    `json:"text"`
	Finish   string    `json:"finish_reason"`
	IDs      []int32   `json:"ids"`
	LogProbs []float32 `json:"logprobs"`
}

// maxCompletions is how many completions one line may ask for; all of them are held until it is answered.
const maxCompletions = 1 << 16

func generateCommand() *cobra.Command {
	var f modelFlags
	var n int
	var seed uint64
	var chat []string
	p := policy.SamplingParams{}
	cmd := &cobra.Command{
		Use:   "generate --model DIR",
		Short: `Sample completions: {"prompt"} or {"messages"} -> {"completions"}, one JSON object a line`,
		Long: `Reads JSON lines with "prompt" (text, encoded as it is) or "messages" (rendered by the chat template) and answers each with
its completions. With --chat TEXT it takes TEXT as one user message instead and prints plain text.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > maxCompletions {
				return fmt.Errorf("--num-generations must be from 1 to %d, not %d", maxCompletions, n)
			}
			if p.Greedy = p.Temperature == 0; p.Greedy {
				p.Temperature = 1
			}
			l, err := f.load(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			p.EOS = trainer.EOS(l.model, l.tok)
			p.Decode = func(ids []int32) string { return l.tok.Decode(ids, true) }
			row := uint64(0)
			answer := func(q generateQuery) (generateReply, error) {
				row++
				return l.generate(cmd, q, n, policy.GenerateOptions{Adapter: l.adapter, SamplingParams: p}, []uint64{seed, row})
			}
			if len(chat) == 0 {
				return filter(cmd.InOrStdin(), cmd.OutOrStdout(), answer)
			}
			for _, text := range chat {
				r, err := answer(generateQuery{Messages: []token.Message{{Role: "user", Content: text}}})
				if err != nil {
					return err
				}
				for _, c := range r.Completions {
					fmt.Fprintln(cmd.OutOrStdout(), c.Text)
				}
			}
			return nil
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&chat, "chat", nil, "a user message to answer in plain text")
	flags.IntVarP(&n, "num-generations", "n", 1, "completions of each prompt")
	flags.Uint64Var(&seed, "seed", 42, "seed of the samples")
	flags.Float32Var(&p.Temperature, "temperature", 1, "logits are divided by it; 0: always the likeliest token")
	flags.IntVar(&p.TopK, "top-k", 0, "keep this many of the likeliest tokens; 0: all")
	flags.Float32Var(&p.TopP, "top-p", 1, "keep the likeliest tokens that together have this probability")
	flags.Float32Var(&p.MinP, "min-p", 0, "drop tokens less likely than this share of the likeliest one")
	flags.Float32Var(&p.RepetitionPenalty, "repetition-penalty", 1, "penalty of tokens seen before; 1: off")
	flags.IntVar(&p.MaxNewTokens, "max-new-tokens", 256, "longest completion, tokens")
	flags.StringArrayVar(&p.Stop, "stop", nil, "text that ends a completion")
	return cmd
}

func (l *loaded) generate(cmd *cobra.Command, q generateQuery, n int, o policy.GenerateOptions, stream []uint64) (generateReply, error) {
	if (q.Prompt == nil) == (q.Messages == nil) {
		return generateReply{}, fmt.Errorf(`give either "prompt" or "messages"`)
	}
	var ids []int32
	if q.Prompt != nil {
		ids = l.tok.Encode(*q.Prompt, token.EncodeOptions{AddSpecial: true})
	} else {
		var err error
		if _, ids, err = l.tok.Chat(q.Messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()}); err != nil {
			return generateReply{}, err
		}
	}
	samples, err := l.model.Generate(cmd.Context(), []policy.Request{{Prompt: ids, N: n, Stream: stream}}, o)
	if err != nil {
		return generateReply{}, err
	}
	var r generateReply
	for _, s := range samples[0] {
		r.Completions = append(r.Completions, completion{l.tok.Decode(s.Tokens, true), s.Finish, s.Tokens, s.LogP})
	}
	return r, nil
}
