package main

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/rubicon-rl/rubicon/policy/token"
)

const tokenizeHelp = `Turns text into token ids and back, as the model's tokenizer does in transformers.
Reads JSON objects from standard input, one a line, and answers each with one line.

  {"text": ...}     -> {"ids": [...]}             added tokens in the text become tokens
  --add-special     with what the tokenizer puts around a text, such as begin of text
  --plain           added tokens in the text stay text
  --pieces          -> {"ids", "tokens", "offsets"}, offsets in bytes of the text
  --decode          {"ids": [...]} -> {"text": ...}, without special tokens if --skip-special
  --chat            {"messages": [...], "tools": [...], "add_generation_prompt": true, ...} -> {"text", "ids"}
                    by the model's chat template, which sees all other keys (and those in "kwargs") as variables.
                    Tokens come from the template alone: "<|im_end|>" in a message stays text, unless --trust-content`

// tokenizeFlags say what rubicon tokenize does with a line.
type tokenizeFlags struct {
	model                             string
	decode, chat, pieces, skip, trust bool
	encode                            token.EncodeOptions
}

// tokenizeCommand is the filter rubicon tokenize.
func tokenizeCommand() *cobra.Command {
	var o tokenizeFlags
	c := &cobra.Command{
		Use:     "tokenize --model DIR [flags] < lines",
		Short:   "turn text into token ids and back",
		Long:    tokenizeHelp,
		Example: `  echo '{"text": "Hello"}' | rubicon tokenize --model models/qwen3`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := openFiles(o.model)
			if err != nil {
				return err
			}
			defer files.close()
			t, err := files.tokenizer()
			if err != nil {
				return err
			}
			return filter(c.InOrStdin(), c.OutOrStdout(), func(line json.RawMessage) (any, error) { return o.answer(t, line) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "`folder` of the model, or of its tokenizer; a GGUF file; or embedded:quickstart")
	f.BoolVar(&o.encode.AddSpecial, "add-special", false, "add the special tokens around the text")
	f.BoolVar(&o.encode.Plain, "plain", false, "match no added tokens")
	f.BoolVar(&o.pieces, "pieces", false, "also give tokens and offsets")
	f.BoolVar(&o.decode, "decode", false, "ids to text")
	f.BoolVar(&o.skip, "skip-special", false, "leave special tokens out of decoded text")
	f.BoolVar(&o.chat, "chat", false, "messages to text and ids")
	f.BoolVar(&o.trust, "trust-content", false, "let special tokens inside messages become tokens")
	_ = c.MarkFlagRequired("model") // fails only for a flag that is not there
	c.MarkFlagsMutuallyExclusive("decode", "chat", "pieces", "plain")
	c.MarkFlagsMutuallyExclusive("decode", "chat", "add-special")
	return c
}

// answer answers one line.
func (o *tokenizeFlags) answer(t *token.Tokenizer, line json.RawMessage) (any, error) {
	switch {
	case o.decode:
		return decodeLine(t, line, o.skip)
	case o.chat:
		return chatLine(t, line, o.trust)
	case o.pieces:
		return piecesLine(t, line, o.encode.AddSpecial)
	}
	text, err := textOf(line)
	return map[string]any{"ids": notNil(t.Encode(text, o.encode))}, err
}

// textOf reads {"text": ...}.
func textOf(line json.RawMessage) (string, error) {
	var in struct{ Text *string }
	if err := json.Unmarshal(line, &in); err != nil {
		return "", err
	}
	if in.Text == nil {
		return "", errors.New(`an object with a "text" is wanted`)
	}
	return *in.Text, nil
}

func piecesLine(t *token.Tokenizer, line json.RawMessage, addSpecial bool) (any, error) {
	text, err := textOf(line)
	if err != nil {
		return nil, err
	}
	pieces, err := t.Pieces(text, addSpecial)
	ids, tokens, offsets := []int32{}, []string{}, [][2]int{}
	for _, p := range pieces {
		ids, tokens, offsets = append(ids, p.ID), append(tokens, p.Token), append(offsets, [2]int{p.Start, p.End})
	}
	return map[string]any{"ids": ids, "tokens": tokens, "offsets": offsets}, err
}

func decodeLine(t *token.Tokenizer, line json.RawMessage, skipSpecial bool) (any, error) {
	var in struct{ IDs []int32 }
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	if in.IDs == nil {
		return nil, errors.New(`an object with "ids" is wanted`)
	}
	return map[string]any{"text": t.Decode(in.IDs, skipSpecial)}, nil
}

func chatLine(t *token.Tokenizer, line json.RawMessage, trust bool) (any, error) {
	var in struct {
		Messages            []token.Message
		Tools               json.RawMessage
		AddGenerationPrompt bool           `json:"add_generation_prompt"`
		Kwargs              map[string]any `json:"kwargs"`
	}
	var all map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(line, &in), json.Unmarshal(line, &all))
	if err != nil {
		return nil, err
	}
	if in.Messages == nil {
		return nil, errors.New(`an object with "messages" is wanted`)
	}
	variables := map[string]any{}
	for name, value := range all {
		variables[name] = value
	}
	for _, name := range []string{"messages", "tools", "add_generation_prompt", "kwargs"} {
		delete(variables, name)
	}
	maps.Copy(variables, in.Kwargs)
	if string(in.Tools) == "null" {
		in.Tools = nil
	}
	text, ids, err := t.Chat(in.Messages, token.ChatOptions{
		AddGenerationPrompt: in.AddGenerationPrompt, Tools: in.Tools, Kwargs: variables, Now: time.Now(), TrustContent: trust,
	})
	return map[string]any{"text": text, "ids": notNil(ids)}, err
}

// notNil makes an empty list of none, for JSON.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
