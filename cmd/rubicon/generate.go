package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
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
	var schema string
	p := policy.SamplingParams{}
	cmd := &cobra.Command{
		Use:   "generate --model DIR",
		Short: `Sample completions: {"prompt"} or {"messages"} -> {"completions"}, one JSON object a line`,
		Long: `Reads JSON lines with "prompt" (text, encoded as it is) or "messages" (rendered by the chat template) and answers each with
its completions. With --chat TEXT it takes TEXT as one user message instead and prints plain text. With --json-schema FILE
completions are JSON that meets the schema in FILE.`,
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
			p.EOS = trainer.EOS(l.model.Config(), l.tok)
			p.Decode = func(ids []int32) string { return l.tok.Decode(ids, true) }
			constraint, err := l.constraint(schema, p.EOS)
			if err != nil {
				return err
			}
			row := uint64(0)
			answer := func(q generateQuery) (generateReply, error) {
				row++
				r := policy.Request{N: n, Stream: []uint64{seed, row}, Constraint: constraint}
				return l.generate(cmd, q, r, policy.GenerateOptions{Adapter: l.adapter, SamplingParams: p})
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
	flags.StringVar(&schema, "json-schema", "", "file with a JSON Schema that every completion meets")
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

// constraint holds completions to the JSON Schema in a file; nil: there is none.
func (l *loaded) constraint(file string, eos []int32) (policy.Constraint, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--json-schema: %w", err)
	}
	g, err := grammar.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--json-schema %s: %w", file, err)
	}
	vocab, err := grammar.NewVocab(l.tok, l.model.Config().Vocab, eos)
	if err != nil {
		return nil, err
	}
	return g.For(vocab)
}

// generate answers one line with completions of r, whose prompt is the line's.
func (l *loaded) generate(cmd *cobra.Command, q generateQuery, r policy.Request, o policy.GenerateOptions) (generateReply, error) {
	if (q.Prompt == nil) == (q.Messages == nil) {
		return generateReply{}, fmt.Errorf(`give either "prompt" or "messages"`)
	}
	if q.Prompt != nil {
		r.Prompt = l.tok.Encode(*q.Prompt, token.EncodeOptions{AddSpecial: true})
	} else {
		var err error
		if _, r.Prompt, err = l.tok.Chat(q.Messages, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()}); err != nil {
			return generateReply{}, err
		}
	}
	samples, err := l.model.Generate(cmd.Context(), []policy.Request{r}, o)
	if err != nil {
		return generateReply{}, err
	}
	var reply generateReply
	for _, s := range samples[0] {
		reply.Completions = append(reply.Completions, completion{l.tok.Decode(s.Tokens, true), s.Finish, s.Tokens, s.LogP})
	}
	return reply, nil
}
