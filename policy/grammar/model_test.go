package grammar_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/rubicon-rl/rubicon/internal/cpu"
	"github.com/rubicon-rl/rubicon/internal/golden"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/grammar"
	"github.com/rubicon-rl/rubicon/policy/token"
)

const verdict = `{"type":"object","properties":{"scores":{"type":"array","items":{"type":"object","properties":{"id":{"enum":["a","b"]},"credit":{"type":"number","minimum":0,"maximum":1},
	"reason":{"type":"string","maxLength":12}},"required":["id","credit","reason"]},"minItems":1,"maxItems":2}},"required":["scores"]}`

// A model with random weights says valid JSON, the same whatever it is generated with.
func TestModelSaysValidJSON(t *testing.T) {
	for _, name := range []string{"qwen2", "llama3"} {
		t.Run(name, func(t *testing.T) {
			dev, err := cpu.New(cpu.Options{})
			must(t, err)
			defer dev.Close()
			m, err := policy.Load(t.Context(), dev, golden.Path("models", name), policy.LoadOptions{})
			must(t, err)
			defer m.Close()
			tok, err := token.Load(golden.Path("models", name))
			must(t, err)
			checkModel(t, m, tok)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkModel(t *testing.T, m *policy.Model, tok *token.Tokenizer) {
	eos := append(slices.Clone(m.Config().EOS), tok.EOS())
	v, err := grammar.NewVocab(tok, m.Config().Vocab, eos)
	must(t, err)
	var reqs []policy.Request
	schemas := []string{verdict, `{"type":"integer","minimum":-20,"maximum":300}`, `{"type":"array","items":{"type":["boolean","null"]}}`}
	for i, s := range schemas {
		g, err := grammar.Compile([]byte(s))
		must(t, err)
		c, err := g.For(v)
		must(t, err)
		reqs = append(reqs, policy.Request{Prompt: []int32{5, 6, int32(7 + i)}, N: 5, Stream: []uint64{uint64(i)}, Constraint: c})
	}
	for _, p := range []policy.SamplingParams{
		{Temperature: 1, TopP: 1, RepetitionPenalty: 1}, {Temperature: 1.5, TopP: 0.8, TopK: 20, RepetitionPenalty: 1.1}, {Greedy: true, TopP: 1, RepetitionPenalty: 1},
	} {
		p.MaxNewTokens, p.EOS = 150, eos
		var want [][]policy.Sample
		for _, o := range []policy.GenerateOptions{{}, {MaxBatch: 2}, {KVTokens: 448, PrefillChunk: 5}} {
			o.SamplingParams = p
			got, err := m.Generate(t.Context(), reqs, o)
			must(t, err)
			if want == nil {
				want = got
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the samples depend on %+v", o)
			}
			m.FreeCache()
		}
		for i, samples := range want {
			for _, s := range samples {
				checkText(t, schemas[i], tok.Decode(s.Tokens, true), s.Finish)
			}
		}
	}
}

func checkText(t *testing.T, schema, text, finish string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("schema.json", doc))
	s, err := c.Compile("schema.json")
	must(t, err)
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = s.Validate(v)
	}
	if err != nil || finish != policy.FinishEOS {
		t.Errorf("%s, finish %q: %v", text, finish, err)
	}
}
