package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// settings say how much to write.
type settings struct {
	seed    uint64
	prompts int // training prompts, and as many held-out ones
	steps   int // of SFT
	phase2  int // of these, the last ones with the imperfect writer
}

// A step of SFT sees so many prompts with so many answers each; share of the prompts in phase 1 that are copying
// exercises.
const (
	promptsPerStep   = 12
	answersPerPrompt = 4
	copyShare        = 0.1
)

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type sftRow struct {
	Prompt     []message `json:"prompt"`
	Completion []message `json:"completion"`
}

type taskRow struct {
	ID      string    `json:"id"`
	Prompt  []message `json:"prompt"`
	Checks  []check   `json:"checks"`  // what the prompt asks for
	Quality []check   `json:"quality"` // what it does not say

	Rubric []criterion `json:"rubric"` // easy criteria
	Pool   []criterion `json:"pool"`   // Checks and Quality as criteria
}

// writeAll writes the data, the tokenizer and the model's shape into dir. The same settings give the same bytes.
func writeAll(dir string, s settings) error {
	train, heldOut := split(s.seed, s.prompts)
	b := learn(corpus(s.seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]object{
		"tokenizer.json": b.file(), "tokenizer_config.json": tokenizerConfig(), "config.json": modelConfig(len(b.vocab)),
		"generation_config.json": {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0},
	} {
		data, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if err := writeRows(filepath.Join(dir, "train.jsonl"), tasks("train", train)); err != nil {
		return err
	}
	if err := writeRows(filepath.Join(dir, "eval.jsonl"), tasks("eval", heldOut)); err != nil {
		return err
	}
	if s.steps == 0 {
		return nil
	}
	return writeRows(filepath.Join(dir, "sft.jsonl"), func(yield func(any) bool) { sft(s, append(train, heldOut...), yield) })
}

func tasks(name string, specs []spec) func(func(any) bool) {
	return func(yield func(any) bool) {
		for i, s := range specs {
			id := name + "-" + string(rune('0'+i/10)) + string(rune('0'+i%10))
			if !yield(taskRow{id, []message{{"user", s.prompt()}}, s.asked(), s.quality(), s.easy(), s.pool()}) {
				return
			}
		}
	}
}

// sft yields the rows of SFT in the order in which they are to be learnt: phase 1, then phase 2, the answers to a prompt
// next to each other. The banned tasks do not occur.
func sft(s settings, banned []spec, yield func(any) bool) {
	r := rand.New(rand.NewPCG(s.seed, sftStream))
	ban := map[string]bool{}
	for _, b := range banned {
		ban[b.prompt()] = true
	}
	for step := range s.steps {
		w, copies := competent(r), copyShare
		if step >= s.steps-s.phase2 {
			w, copies = imperfect(r), 0
		}
		for range promptsPerStep {
			prompt, answer := exercise(w, copies, ban)
			for range answersPerPrompt {
				if !yield(sftRow{[]message{{"user", prompt}}, []message{{"assistant", answer()}}}) {
					return
				}
			}
		}
	}
}

// exercise draws a prompt that is not banned, and what writes answers to it.
func exercise(w writer, copies float64, ban map[string]bool) (prompt string, answer func() string) {
	if chance(w.Rand, copies) {
		prompt, text := copying(w.Rand)
		return prompt, func() string { return text }
	}
	for {
		if s := newSpec(w.Rand); !ban[s.prompt()] {
			return s.prompt(), func() string { return w.answer(s) }
		}
	}
}

// corpus is the text that the tokenizer learns from.
func corpus(seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, tokenizerStream))
	var texts []string
	for range 20000 {
		prompt, answer := exercise(imperfect(r), copyShare, nil)
		texts = append(texts, "user\n"+prompt, "assistant\n"+answer())
	}
	return texts
}

func writeRows(path string, rows func(func(any) bool)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for row := range rows {
		if err := enc.Encode(row); err != nil {
			f.Close()
			return err
		}
	}
	if err := out.Flush(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// chatTemplate is ChatML without a newline behind the last message, so that a completion ends with its end token.
const chatTemplate = `{%- for message in messages %}` +
	`{%- if not loop.first %}{{ '\n' }}{%- endif %}` +
	`{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' }}` +
	`{%- endfor %}` +
	`{%- if add_generation_prompt %}{{ '\n<|im_start|>assistant\n' }}{%- endif %}`

func tokenizerConfig() object {
	return object{
		"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": chatTemplate, "model_max_length": 256,
		"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": false,
		"additional_special_tokens": []string{"<|im_start|>", "<|im_end|>"},
	}
}

// modelConfig is a Qwen2 of 1.4 million parameters.
func modelConfig(vocab int) object {
	return object{
		"architectures": []string{"Qwen2ForCausalLM"}, "model_type": "qwen2", "vocab_size": vocab,
		"hidden_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
		"rope_theta": 10000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu", "tie_word_embeddings": true,
		"max_position_embeddings": 256, "initializer_range": 0.05, "attention_dropout": 0.0, "use_sliding_window": false,
		"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 0, "torch_dtype": "bfloat16",
	}
}
