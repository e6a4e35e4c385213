package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rubicon-rl/rubicon/configs"
	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/policy/token"
	"github.com/rubicon-rl/rubicon/trainer"
	"github.com/rubicon-rl/rubicon/trainer/data"
)

func dataOptions(d configs.Data) data.Options {
	return data.Options{
		Format: d.Format, PromptColumn: d.PromptColumn, MessagesColumn: d.MessagesColumn, CompletionColumn: d.CompletionColumn,
		IDColumn: d.IDColumn, Columns: d.Columns, Chat: d.Chat, SystemPrompt: d.SystemPrompt, SkipBad: d.OnBadRow == "skip",
	}
}

// prompts reads, tokenises and measures prompts; limit 0: all.
func (r *openedRun) prompts(files []string, limit int) ([]grpo.Prompt, error) {
	paths, err := dataFiles(files)
	if err != nil {
		return nil, err
	}
	options := dataOptions(r.Config.Data)
	options.NoPrompt = r.episodes != nil
	prompts, report, err := data.Prompts(paths, options)
	if err != nil {
		return nil, err
	}
	if report.Bad > 0 {
		fmt.Fprintf(r.Console, "note: %s\n", report)
	}
	if limit > 0 {
		prompts = prompts[:min(limit, len(prompts))]
	}
	encoded := prompts[:0:0]
	for _, p := range prompts {
		err := r.encodePrompt(&p)
		if err == nil {
			encoded = append(encoded, p)
		} else if err := r.badRow(fmt.Errorf("prompt %s: %w", p.ID, err)); err != nil {
			return nil, err
		}
	}
	return fitPrompts(r.Config, encoded, r.shape.MaxPositions, r.Console)
}

// badRow is the fate of a row that the tokenizer or the chat template refuses: data.on_bad_row.
func (r *openedRun) badRow(err error) error {
	if r.Config.Data.OnBadRow != "skip" {
		return err
	}
	fmt.Fprintf(r.Console, "note: left out: %v\n", err)
	return nil
}

// encodePrompt sets what the policy sees of a prompt: the row's own, or what an environment makes of the row.
func (r *openedRun) encodePrompt(p *grpo.Prompt) error {
	c := r.conversation()
	if r.episodes == nil && len(p.Messages) == 0 {
		p.Tokens = r.Tokenizer.Encode(p.Text, token.EncodeOptions{AddSpecial: true})
		return nil
	}
	var tools json.RawMessage
	if r.episodes != nil {
		_, start, err := r.episodes.Env.Reset(context.Background(), p)
		if err != nil {
			return err
		}
		p.Messages, tools = start.Messages, start.Tools
	}
	var err error
	p.Tokens, err = c.Opening(p.Messages, tools)
	return err
}

// conversation is how messages are written for the run's model.
func (r *openedRun) conversation() trainer.Conversation {
	return trainer.Conversation{
		Tokenizer: r.Tokenizer, EOS: trainer.EOS(r.shape, r.Tokenizer),
		Chat: token.ChatOptions{Kwargs: r.Config.Data.ChatTemplateKwargs, Now: r.Now()},
	}
}

// fitPrompts leaves only prompts that have room for a completion in the model's context.
func fitPrompts(c *configs.Config, prompts []grpo.Prompt, context int, w io.Writer) ([]grpo.Prompt, error) {
	limit := context - c.Rollout.MaxCompletionLength
	if limit < 1 {
		return nil, fmt.Errorf("rollout.max_completion_length %d leaves no room for a prompt in the model's context of %d tokens: lower it",
			c.Rollout.MaxCompletionLength, context)
	}
	if c.Data.MaxPromptLength > 0 {
		limit = min(limit, c.Data.MaxPromptLength)
	}
	kept := prompts[:0:0]
	for _, p := range prompts {
		switch {
		case len(p.Tokens) == 0:
			return nil, fmt.Errorf("prompt %s is empty to the tokenizer: remove the row, or set data.chat", p.ID)
		case len(p.Tokens) <= limit:
			kept = append(kept, p)
		case c.Data.OnLongPrompt == "fail":
			return nil, fmt.Errorf("prompt %s has %d tokens, more than %d: set data.on_long_prompt=skip, raise data.max_prompt_length or lower rollout.max_completion_length",
				p.ID, len(p.Tokens), limit)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("all %d prompts are longer than %d tokens: raise data.max_prompt_length or lower rollout.max_completion_length",
			len(prompts), limit)
	}
	if n := len(prompts) - len(kept); n > 0 {
		fmt.Fprintf(w, "note: left out %d prompts longer than %d tokens\n", n, limit)
	}
	return kept, nil
}

// examples reads and tokenises the rows of supervised fine-tuning; limit 0: all.
func (r *openedRun) examples(files []string, limit int) ([]trainer.Example, error) {
	paths, err := dataFiles(files)
	if err != nil {
		return nil, err
	}
	rows, report, err := data.Examples(paths, dataOptions(r.Config.Data))
	if err != nil {
		return nil, err
	}
	if report.Bad > 0 {
		fmt.Fprintf(r.Console, "note: %s\n", report)
	}
	if limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	context, cut, empty := r.shape.MaxPositions, 0, 0
	if n := r.Config.Data.MaxLength; n > 0 {
		context = min(context, n)
	}
	out := make([]trainer.Example, 0, len(rows))
	for _, row := range rows {
		e, err := r.encodeExample(row)
		if err != nil {
			if err := r.badRow(fmt.Errorf("example %s: %w", row.ID, err)); err != nil {
				return nil, err
			}
			continue
		}
		if len(e.Tokens) > context {
			cut++
			e.Tokens, e.Learn = e.Tokens[:context], e.Learn[:context]
		}
		if slices.Contains(e.Learn, true) {
			out = append(out, e)
		} else if r.Config.Data.OnBadRow == "fail" {
			return nil, fmt.Errorf("example %s has nothing to learn within %d tokens: raise data.max_length, or set data.on_bad_row=skip", row.ID, context)
		} else {
			empty++
		}
	}
	if empty > 0 {
		fmt.Fprintf(r.Console, "note: left out %d examples with nothing to learn within %d tokens\n", empty, context)
	}
	if cut > 0 {
		fmt.Fprintf(r.Console, "note: cut %d examples to %d tokens\n", cut, context)
	}
	return out, nil
}

// encodeExample tokenises a row as TRL does: of text the completion is learned, with the end token after it; of a
// conversation the assistant's turns after the given ones.
func (r *openedRun) encodeExample(row data.Example) (trainer.Example, error) {
	if row.Messages == nil {
		prompt := r.Tokenizer.Encode(row.Prompt, token.EncodeOptions{AddSpecial: true})
		whole := r.Tokenizer.Encode(row.Prompt+row.Completion, token.EncodeOptions{AddSpecial: true})
		if eos := r.Tokenizer.EOS(); eos >= 0 && (len(whole) == 0 || whole[len(whole)-1] != eos) {
			whole = append(whole, eos)
		}
		e := trainer.Example{Tokens: whole, Learn: make([]bool, len(whole))}
		return e, learnFrom(e.Learn, whole, prompt, len(whole))
	}
	o, err := r.chatOptions(row)
	if err != nil {
		return trainer.Example{}, err
	}
	whole, err := r.chat(row.Messages, o, false)
	if err != nil {
		return trainer.Example{}, err
	}
	e := trainer.Example{Tokens: whole, Learn: make([]bool, len(whole))}
	for i := row.Given; i < len(row.Messages); i++ {
		if row.Messages[i].Role != "assistant" {
			continue
		}
		before, err := r.chat(row.Messages[:i], o, true)
		if err != nil {
			return e, err
		}
		after := whole
		if i+1 < len(row.Messages) {
			if after, err = r.chat(row.Messages[:i+1], o, false); err != nil {
				return e, err
			}
		}
		if err := learnFrom(e.Learn, whole, before, len(after)); err != nil {
			return e, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return e, nil
}

// chatOptions are those of a row to learn from: with its column tools, as TRL reads it. Its messages' added tokens (<think>, <tool_call>)
// are tokens: the rows are the user's own.
func (r *openedRun) chatOptions(row data.Example) (token.ChatOptions, error) {
	o := token.ChatOptions{Kwargs: r.Config.Data.ChatTemplateKwargs, Now: r.Now(), TrustContent: true}
	switch tools := row.Columns["tools"].(type) {
	case nil:
	case []any:
		var err error
		if o.Tools, err = json.Marshal(tools); err != nil {
			return o, fmt.Errorf("column tools: %w", err)
		}
	default:
		return o, errors.New("column tools is no list: give the tools in OpenAI's function format")
	}
	return o, nil
}

// chat are the tokens of messages, up to where an assistant's turn begins if generation is set.
func (r *openedRun) chat(messages []grpo.Message, o token.ChatOptions, generation bool) ([]int32, error) {
	o.AddGenerationPrompt = generation
	_, ids, err := r.Tokenizer.Chat(trainer.TokenMessages(messages), o)
	return ids, err
}

// learnFrom marks the tokens of whole from the end of its beginning before up to end.
func learnFrom(learn []bool, whole, before []int32, end int) error {
	if len(before) >= end || end > len(whole) || !slices.Equal(whole[:len(before)], before) {
		return fmt.Errorf("the tokens of the prompt do not stand unchanged before those of the completion: begin the completion at a word, or use messages")
	}
	for i := max(1, len(before)); i < end; i++ {
		learn[i] = true
	}
	return nil
}
