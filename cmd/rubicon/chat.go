package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
)

const chatHelp = `/help         this
/reset        begin anew
/system TEXT  begin anew with another system message; without TEXT: with none
/undo         take the last message and its answer back
/save FILE    append the conversation to FILE, as one JSON line with "messages"
/exit         leave; so does the end of the input
//TEXT        say /TEXT
Ctrl-C stops an answer, of which what was said stays; between answers it leaves.
`

// chatContext is how many tokens a conversation has room for where the user does not say: their keys and values take memory
// from the start.
const chatContext = 4096

type chatFlags struct {
	modelFlags
	sampling        samplingFlags
	compare, system string
	context         int
}

func chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use:   "chat --model DIR [--adapter DIR]",
		Short: "Talk to a model, with an adapter and --compare base: to both with it and without",
		Long: `Talks to a model through its chat template. Answers appear as they are sampled, and nothing that was said before is computed
again. Every line of the input is a message, or a command:

` + chatHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.compare != "" && (f.compare != "base" || f.adapter == "") {
				return fmt.Errorf("--compare takes base, and needs an --adapter to compare with")
			}
			l, err := f.load(cmd.Context())
			if err != nil {
				return err
			}
			defer l.close()
			c, err := f.open(l, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer c.close()
			return c.run(cmd.Context(), cmd.InOrStdin())
		},
	}
	f.add(cmd)
	f.sampling.add(cmd, 1024)
	flags := cmd.Flags()
	flags.StringVar(&f.system, "system", "", "system message; default: the chat template's own, if it has one")
	flags.StringVar(&f.compare, "compare", "", "base: answer without the adapter too, from the same seed, each side in its own conversation")
	flags.IntVar(&f.context, "context", 0, fmt.Sprintf("longest conversation, tokens; 0: %d, or the model's context if that is less", chatContext))
	return cmd
}

// open begins a conversation with the adapter, and if it is compared another without.
func (f *chatFlags) open(l *loaded, out, log io.Writer) (*chat, error) {
	p := f.sampling.params(l)
	now := time.Now() // one for all turns: a template that says the time begins each of them alike
	c := &chat{
		out: out, log: log, sampling: p, seed: f.sampling.seed, system: f.system, tok: l.tok,
		form: trainer.Conversation{Tokenizer: l.tok, EOS: p.EOS, Chat: token.ChatOptions{Now: now}},
		stoppable: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt)
		},
	}
	if !l.tok.HasChat() {
		fmt.Fprintln(log, "note: the model has no chat template: messages are plain lines")
	}
	c.sides = []*side{{adapter: l.adapter}}
	if f.compare != "" {
		c.sides = []*side{{name: "adapter", adapter: l.adapter}, {name: "base"}}
	}
	most := l.model.Config().MaxPositions
	if c.context = f.context; c.context == 0 {
		c.context = min(chatContext, most)
	}
	if c.context < 2 || c.context > most {
		return nil, fmt.Errorf("--context %d: the model's context allows 2 to %d", c.context, most)
	}
	var err error
	c.session, err = l.model.NewSession(policy.SessionOptions{MaxBatch: 1, KVTokens: len(c.sides) * (c.context + chatSlack)})
	return c, err
}

// chatSlack is room beside a conversation's own tokens: prompt and answer do not share their last pages.
const chatSlack = 128

// run answers lines until they end.
func (c *chat) run(ctx context.Context, in io.Reader) error {
	terminal := isTerminal(in)
	r := bufio.NewReader(in)
	for n := 1; ; n++ {
		if terminal {
			fmt.Fprint(c.log, ">>> ")
		}
		line, err := r.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		last := err != nil
		leave, err := c.line(ctx, strings.TrimSpace(line))
		switch {
		case err != nil && terminal:
			fmt.Fprintln(c.log, err)
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		}
		if leave || last {
			return nil
		}
	}
}

func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// line does what a line of the input says; leave says that it is the last.
func (c *chat) line(ctx context.Context, line string) (leave bool, err error) {
	if line == "" {
		return false, nil
	}
	if text, ok := strings.CutPrefix(line, "//"); ok {
		line = "/" + text
	} else if strings.HasPrefix(line, "/") {
		return c.command(line)
	}
	return false, c.say(ctx, line)
}

func (c *chat) command(line string) (leave bool, err error) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if rest != "" && name != "/system" && name != "/save" {
		return false, fmt.Errorf("%s takes nothing behind it; to say this as a message, begin it with //", name)
	}
	switch name {
	case "/help":
		fmt.Fprint(c.log, chatHelp)
	case "/reset":
		c.reset()
	case "/system":
		c.system = rest
		c.reset()
	case "/undo":
		return false, c.undo()
	case "/save":
		return false, c.save(rest)
	case "/exit":
		return true, nil
	default:
		return false, fmt.Errorf("there is no command %s: /help lists them; to say this as a message, begin it with //", name)
	}
	return false, nil
}
