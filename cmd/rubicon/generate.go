package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

// maxCompletions is how many completions one line may ask for; all of them are held until it is answered.
const maxCompletions = 1 << 16

type generateFlags struct {
	modelFlags
	sampling             samplingFlags
	n, batch             int
	chat                 []string
	schema, format, file string
}

func generateCommand() *cobra.Command {
	var f generateFlags
	cmd := &cobra.Command{
		Use:   "generate --model DIR [FILE]",
		Short: `Sample completions of prompts from a file or stdin, one JSON object a line`,
		Long: `Reads prompts from FILE, or from stdin, and answers each line with its completions, in the order of the input:

  {"line": 1, "seed": 42, "completions": [{"text", "finish_reason", "ids", "logprobs"}]}

A line is a JSON object with "prompt" (text, encoded as it is) or "messages" (rendered by the chat template), and with "id", which
comes back, if you like; in a file that ends in .txt, or with --format, it is the prompt itself. All lines are checked before the
first is answered. A completion depends on the model, its prompt, --seed, the number of its line and its own number, not on what
else is asked. finish_reason is eos, stop or length.

With --chat TEXT it takes TEXT as one user message instead and prints plain text. With --json-schema FILE completions are
JSON that meets the schema in FILE.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] != "-" {
				f.file = args[0]
			}
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	f.add(cmd)
	f.sampling.add(cmd, 256)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.chat, "chat", nil, "a user message to answer in plain text")
	flags.StringVar(&f.schema, "json-schema", "", "file with a JSON Schema that every completion meets")
	flags.StringVar(&f.format, "format", "auto", "what a line is: jsonl; prompts: a prompt; messages: a user message; auto: prompts in a .txt file, else jsonl")
	flags.IntVarP(&f.n, "num-generations", "n", 1, "completions of each prompt")
	flags.IntVar(&f.batch, "batch", 64, "completions sampled at a time; each takes memory for its keys and values")
	return cmd
}

func (f *generateFlags) check() error {
	switch {
	case f.n < 1 || f.n > maxCompletions:
		return fmt.Errorf("--num-generations must be from 1 to %d, not %d", maxCompletions, f.n)
	case f.batch < 1:
		return fmt.Errorf("--batch must be at least 1, not %d", f.batch)
	case f.chat != nil && f.file != "":
		return errors.New("give either --chat or a file of prompts")
	case f.format == "auto" && filepath.Ext(f.file) == ".txt":
		f.format = "prompts"
	case f.format == "auto":
		f.format = "jsonl"
	case f.format != "jsonl" && f.format != "prompts" && f.format != "messages":
		return fmt.Errorf("--format %q is none of auto, jsonl, prompts, messages", f.format)
	}
	return nil
}

func (f *generateFlags) run(cmd *cobra.Command) error {
	rows, err := f.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	l, err := f.load(cmd.Context())
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.encode(rows, time.Now()); err != nil {
		return err
	}
	p := f.sampling.params(l)
	constraint, err := l.constraint(f.schema, p.EOS)
	if err != nil {
		return err
	}
	g := generation{
		loaded: l, n: f.n, seed: f.sampling.seed, constraint: constraint,
		options: policy.GenerateOptions{Adapter: l.adapter, SamplingParams: p, MaxBatch: f.batch},
		out:     cmd.OutOrStdout(), log: cmd.ErrOrStderr(), plain: f.chat != nil, now: time.Now,
	}
	return g.run(cmd.Context(), rows)
}

// read are the rows to answer.
func (f *generateFlags) read(in io.Reader) ([]generateRow, error) {
	if f.chat != nil {
		var rows []generateRow
		for i, text := range f.chat {
			rows = append(rows, generateRow{line: i + 1, query: userMessage(text)})
		}
		return rows, nil
	}
	name := "stdin"
	if f.file != "" {
		file, err := os.Open(f.file)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in, name = file, f.file
	}
	rows, err := readRows(in, f.format)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rows, nil
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

func userMessage(text string) generateQuery {
	return generateQuery{Messages: []token.Message{{Role: "user", Content: text}}}
}

// samplingFlags are the flags of the commands that sample.
type samplingFlags struct {
	p    policy.SamplingParams
	seed uint64
}

func (f *samplingFlags) add(cmd *cobra.Command, tokens int) {
	flags := cmd.Flags()
	flags.Uint64Var(&f.seed, "seed", 42, "seed of the samples")
	flags.Float32Var(&f.p.Temperature, "temperature", 1, "logits are divided by it; 0: always the likeliest token")
	flags.IntVar(&f.p.TopK, "top-k", 0, "keep this many of the likeliest tokens; 0: all")
	flags.Float32Var(&f.p.TopP, "top-p", 1, "keep the likeliest tokens that together have this probability")
	flags.Float32Var(&f.p.MinP, "min-p", 0, "drop tokens less likely than this share of the likeliest one")
	flags.Float32Var(&f.p.RepetitionPenalty, "repetition-penalty", 1, "penalty of tokens seen before; 1: off")
	flags.IntVar(&f.p.MaxNewTokens, "max-new-tokens", tokens, "longest completion, tokens")
	flags.StringArrayVar(&f.p.Stop, "stop", nil, "text that ends a completion")
}

// params are the settings for a model.
func (f *samplingFlags) params(l *loaded) policy.SamplingParams {
	p := f.p
	if p.Greedy = p.Temperature == 0; p.Greedy {
		p.Temperature = 1
	}
	p.EOS = trainer.EOS(l.model.Config(), l.tok)
	p.Decode = func(ids []int32) string { return l.tok.Decode(ids, true) }
	return p
}
