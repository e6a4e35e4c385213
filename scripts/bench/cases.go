package main

import (
	"fmt"
	"maps"
)

// spec is what a program is told when it starts, point what it is asked for in a request; both become JSON.
type (
	spec  map[string]any
	point map[string]any
)

// testCase is one comparison: some programs do the same work at some points.
type testCase struct {
	Name     string
	Points   []point
	Subjects []subject
	Claims   []claim
	Fresh    bool // every sample is a new process
}

// subject is one program that takes part.
type subject struct {
	Name   string
	Script string // in peers; empty: this command
	Spec   spec
}

// claim is a ratio of two subjects' medians at every point: how much better Ours is than the best of Peers. Without Peers
// the metric is a ratio itself.
type claim struct {
	Ours   string
	Peers  []string
	Metric string
	Bar    float64 // the ratio that is asked for; 0: none, recorded only
}

// variant is a way in which rubicon computes: what its configuration says.
type variant struct {
	name    string
	compute string   // the peers' type that it answers to: f32 or bf16
	set     []string // key=value
}

// variants of rubicon; a new one is a line.
func variants() []variant {
	return []variant{
		{"f32", "f32", []string{"model.dtype=bfloat16"}},
		{"bf16", "bf16", []string{"model.dtype=bfloat16", "model.compute_dtype=bfloat16"}},
	}
}

// compressed are variants whose weights take less memory and are others, so that nothing is claimed of them.
func compressed() []variant {
	return []variant{
		{"int8", "", []string{"model.dtype=int8"}},
		{"int4", "", []string{"model.dtype=int4"}},
	}
}

// builder makes the cases' subjects.
type builder struct {
	places
	threads int
}

func cases(p places, threads int) []testCase {
	b := builder{p, threads}
	return []testCase{
		b.grpoStep(), b.fwdBwd(), b.sharedPrompt(), b.decode(), b.load(), b.stream(), b.gemm(1), b.gemm(threads), b.tinyModel(), b.accuracy(),
	}
}

// rubicon is a variant at work on a case.
func (b builder) rubicon(v variant, suffix, work string, extra spec, set ...string) subject {
	s := spec{"case": work, "model": b.model, "set": append(append([]string{fmt.Sprintf("threads=%d", b.threads)}, v.set...), set...)}
	maps.Copy(s, extra)
	return subject{Name: "rubicon " + v.name + suffix, Spec: s}
}

// peer is one of the scripts at work.
func (b builder) peer(name, script, work string, extra spec) subject {
	s := spec{"case": work, "model": b.model, "threads": b.threads}
	maps.Copy(s, extra)
	return subject{Name: name, Script: script, Spec: s}
}

// torch is transformers with a type of weights.
func (b builder) torch(name, dtype, work string, extra spec) subject {
	e := spec{"dtype": dtype}
	maps.Copy(e, extra)
	return b.peer("torch "+name, "hf.py", work, e)
}

func (c *testCase) claim(ours, metric string, bar float64, peers ...string) {
	c.Claims = append(c.Claims, claim{ours, peers, metric, bar})
}

// grpoStep is a whole optimiser step: sampling, reward, reference, loss, gradient, update.
func (b builder) grpoStep() testCase {
	c := testCase{Name: "grpo_step", Points: []point{{"prompts": 2, "completions": 4, "prompt": 128, "new": 64}}}
	data := spec{"data": b.data}
	modes := []struct {
		suffix string
		ckpt   bool
	}{{"", false}, {" ckpt", true}}
	for _, m := range modes {
		for _, dtype := range []string{"f32", "autocast"} {
			e := spec{"dtype": dtype, "checkpointing": m.ckpt, "data": b.data}
			c.Subjects = append(c.Subjects, b.peer("trl "+dtype+m.suffix, "trl_step.py", c.Name, e))
		}
	}
	for _, v := range variants() {
		same := map[string]string{"f32": "trl f32", "bf16": "trl autocast"}[v.compute]
		for _, m := range modes {
			s := b.rubicon(v, m.suffix, c.Name, data, fmt.Sprintf("model.gradient_checkpointing=%v", m.ckpt))
			c.Subjects = append(c.Subjects, s)
			c.claim(s.Name, "seconds", 5, "trl f32")
			c.claim(s.Name, "seconds", 5, "trl autocast")
			c.claim(s.Name, "peak_mib", 4, same+m.suffix)
		}
	}
	return c
}

// fwdBwd is the log-probabilities of the ends of distinct sequences and an adapter's gradient.
func (b builder) fwdBwd() testCase {
	c := testCase{Name: "fwd_bwd_lora", Points: []point{{"sequences": 8, "length": 192, "scored": 64}}}
	c.Subjects = []subject{
		b.torch("f32", "f32", c.Name, nil), b.torch("bf16", "bf16", c.Name, nil), b.torch("autocast", "autocast", c.Name, nil),
	}
	for _, v := range variants() {
		s := b.rubicon(v, "", c.Name, nil, "model.gradient_checkpointing=false")
		c.Subjects = append(c.Subjects, s, b.rubicon(v, " ckpt", c.Name, nil, "model.gradient_checkpointing=true"))
		c.claim(s.Name, "seconds", 1.8, "torch f32")
		c.claim(s.Name, "seconds", 1.25, "torch bf16", "torch autocast")
	}
	for _, v := range compressed() {
		c.Subjects = append(c.Subjects, b.rubicon(v, "", c.Name, nil, "model.gradient_checkpointing=false"))
	}
	return c
}

// sharedPrompt is the gradient of completions of one prompt, computed once or once for each.
func (b builder) sharedPrompt() testCase {
	c := testCase{Name: "shared_prompt", Points: []point{{"prompt": 512, "completions": 8, "new": 64}}}
	c.Subjects = []subject{b.torch("f32", "f32", c.Name, nil)}
	for _, v := range variants() {
		shared := b.rubicon(v, "", c.Name, spec{"share": true})
		apart := b.rubicon(v, " unshared", c.Name, spec{"share": false})
		c.Subjects = append(c.Subjects, shared, apart)
		c.claim(shared.Name, "seconds", 3, apart.Name)
		c.claim(shared.Name, "seconds", 0, "torch f32")
	}
	return c
}

// decode is sampling at several batch sizes, without the prompts' part.
func (b builder) decode() testCase {
	c := testCase{Name: "decode"}
	for _, n := range []int{1, 8, 32} {
		c.Points = append(c.Points, point{"batch": n, "prompt": 128, "new": 64})
	}
	c.Subjects = []subject{
		b.peer("llama.cpp native", "llama_native.py", c.Name, spec{"model": b.gguf("BF16")}),
		b.peer("llama.cpp wheel", "llama_wheel.py", c.Name, spec{"model": b.gguf("BF16")}),
		b.torch("bf16", "bf16", c.Name, nil), b.torch("f32", "f32", c.Name, nil),
	}
	for _, v := range variants() {
		s := b.rubicon(v, "", c.Name, nil)
		c.Subjects = append(c.Subjects, s)
		c.claim(s.Name, "tok_s", 1, "llama.cpp native")
		c.claim(s.Name, "tok_s", 1, "llama.cpp wheel")
		c.claim(s.Name, "tok_s", 2.5, "torch bf16")
		c.claim(s.Name, "tok_s", 3, "torch f32")
		c.claim(s.Name, "stream_share", 0.7)
	}
	for _, v := range compressed() {
		c.Subjects = append(c.Subjects, b.rubicon(v, "", c.Name, nil))
	}
	return c
}

// load is reading a folder of safetensors that is in the page cache.
func (b builder) load() testCase {
	c := testCase{Name: "load", Points: []point{{}}, Fresh: true}
	c.Subjects = []subject{b.torch("f32", "f32", c.Name, nil)}
	for _, v := range variants() {
		s := b.rubicon(v, "", c.Name, nil)
		c.Subjects = append(c.Subjects, s)
		c.claim(s.Name, "seconds", 3, "torch f32")
	}
	s := b.rubicon(variant{name: "f32 weights"}, "", c.Name, nil, "model.dtype=float32")
	c.Subjects = append(c.Subjects, s)
	c.claim(s.Name, "seconds", 0, "torch f32")
	return c
}

// stream is reading memory: more than the caches hold, and as much as the model's weights are.
func (b builder) stream() testCase {
	c := testCase{Name: "stream", Points: []point{{"mib": 1024}, {"mib": 256}}}
	c.Subjects = []subject{b.torch("sum", "f32", c.Name, nil), b.rubicon(variant{name: "loop"}, "", c.Name, nil)}
	return c
}

// gemm is products x·Wᵀ and dy·W of the shapes of several models, frozen weights.
func (b builder) gemm(threads int) testCase {
	b.threads = threads
	c := testCase{Name: fmt.Sprintf("gemm_%dt", threads)}
	for _, s := range []struct{ m, n, k int }{
		{64, 256, 256}, {512, 896, 896}, {512, 4864, 896}, {512, 896, 4864}, {1, 4864, 896}, {8, 4864, 896}, {512, 18992, 896}, {4096, 128, 64},
	} {
		c.Points = append(c.Points, point{"op": "forward", "m": s.m, "n": s.n, "k": s.k})
		if s.m == 512 {
			c.Points = append(c.Points, point{"op": "input-gradient", "m": s.m, "n": s.n, "k": s.k})
		}
	}
	c.Subjects = []subject{
		b.peer("openblas", "openblas.py", "gemm", nil), b.torch("f32", "f32", "gemm", nil), b.torch("bf16", "bf16", "gemm", nil),
		b.torch("autocast", "autocast", "gemm", nil),
	}
	peers := map[string][]string{"f32": {"openblas", "torch f32"}, "bf16": {"torch bf16"}}
	wide := variant{"f32 weights", "f32", []string{"model.dtype=float32"}}
	for _, v := range append(variants(), wide) {
		s := b.rubicon(v, "", "gemm", nil)
		c.Subjects = append(c.Subjects, s)
		c.claim(s.Name, "gflops", 0.85, peers[v.compute]...)
		if v.compute == "bf16" {
			c.claim(s.Name, "gflops", 0.85, "torch autocast")
		}
	}
	return c
}

// tinyModel is the quickstart's model, where calls and threads cost more than arithmetic.
func (b builder) tinyModel() testCase {
	b.model = b.tiny
	c := testCase{Name: "tiny", Points: []point{{"prompts": 8, "completions": 8, "prompt": 32, "new": 48}}}
	c.Subjects = []subject{b.torch("f32", "f32", c.Name, nil)}
	for _, v := range variants() {
		s := b.rubicon(v, "", c.Name, nil, "model.gradient_checkpointing=false")
		c.Subjects = append(c.Subjects, s)
		for _, metric := range []string{"generate_tok_s", "train_tok_s", "step_tok_s"} {
			c.claim(s.Name, metric, 3, "torch f32")
		}
	}
	return c
}

// accuracy is how far the gradient of fwdBwd's work is from that in float64.
func (b builder) accuracy() testCase {
	c := testCase{Name: "accuracy", Points: []point{{"scored": 64}}}
	files := spec{"adapter": b.adapter, "data": b.data, "reference": b.truth}
	c.Subjects = []subject{b.torch("f32", "f32", c.Name, files), b.torch("bf16", "bf16", c.Name, files), b.torch("autocast", "autocast", c.Name, files)}
	for _, v := range variants() {
		s := b.rubicon(v, "", c.Name, files)
		c.Subjects = append(c.Subjects, s)
		same := map[string]string{"f32": "torch f32", "bf16": "torch autocast"}[v.compute]
		c.claim(s.Name, "grad_error", 1, same)
	}
	for _, v := range compressed() {
		c.Subjects = append(c.Subjects, b.rubicon(v, "", c.Name, files))
	}
	return c
}
