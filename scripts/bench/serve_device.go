package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
)

// sample draws so many tokens for each prompt, n times, all at once.
func (e *engine) sample(ctx context.Context, adapter string, prompts [][]int32, n, tokens int) error {
	var requests []policy.Request
	for i, p := range prompts {
		requests = append(requests, policy.Request{Prompt: p, N: n, Stream: []uint64{uint64(i)}})
	}
	_, err := e.model.Generate(ctx, requests, policy.GenerateOptions{
		Adapter: adapter, MaxBatch: n * len(prompts), PrefillChunk: len(prompts) * len(prompts[0]), // so that all begin together
		SamplingParams: policy.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, MaxNewTokens: tokens},
	})
	return err
}

// decode is the rate of new tokens after the first, without an adapter, and the share of the memory's bandwidth at which it
// reads the weights.
func (e *engine) decode(ctx context.Context, r request) (values, error) {
	var prompts [][]int32
	for i := range r.Batch {
		prompts = append(prompts, e.synthetic(i+1, r.Prompt))
	}
	one, err := clock(func() error { return e.sample(ctx, "", prompts, 1, 1) })
	if err != nil {
		return nil, err
	}
	all, err := clock(func() error { return e.sample(ctx, "", prompts, 1, r.New+1) })
	if err != nil {
		return nil, err
	}
	steps := float64(r.New) / (all - one)
	v := values{"tok_s": float64(r.Batch) * steps, "prefill": one, "seconds": all}
	if r.Batch == 1 {
		v["stream_share"] = steps * float64(e.bytes) / bandwidth(int(e.bytes), e.dev.Info().Threads)
	}
	return v, nil
}

// tiny is sampling and training in the shape of a GRPO step. train_tok_s is of sequences that share nothing, as torch
// computes them; the step shares prompts.
func (e *engine) tiny(ctx context.Context, r request) (values, error) {
	rows, length := r.Prompts*r.Completions, r.Prompt+r.New
	var prompts, sequences [][]int32
	forest := &policy.Forest{}
	for i := range r.Prompts {
		prompts = append(prompts, e.synthetic(1+i, r.Prompt))
		root := len(forest.Segments)
		forest.Segments = append(forest.Segments, segment(policy.Root, prompts[i], 0))
		for j := range r.Completions {
			k := i*r.Completions + j
			forest.Segments = append(forest.Segments, segment(root, e.synthetic(100+k, r.New), r.New))
			sequences = append(sequences, e.synthetic(100+k, length))
		}
	}
	generate, err := clock(func() error { return e.sample(ctx, adapterName, prompts, r.Completions, r.New) })
	if err != nil {
		return nil, err
	}
	unshared, _, err := e.gradient(apart(sequences, r.New))
	if err != nil {
		return nil, err
	}
	shared, _, err := e.gradient(forest)
	drawn := float64(rows * r.New)
	return values{
		"generate_tok_s": drawn / generate, "train_tok_s": float64(rows*length) / unshared["seconds"],
		"step_tok_s": drawn / (generate + shared["seconds"]),
	}, err
}

// load is the time from a folder to a model that is ready, and the rate at which weights that are in memory are packed,
// counted in bytes of the source.
func (e *engine) load(ctx context.Context, _ request) (values, error) {
	seconds, err := clock(func() error {
		if err := e.loadModel(ctx); err != nil {
			return err
		}
		return e.dev.Sync()
	})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(e.Model, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	v := values{"seconds": seconds, "gb_s": float64(info.Size()) / seconds / 1e9}
	const n, k = 8192, 4096
	w, err := e.dev.NewWeight(e.dtype(), n, k)
	if err != nil {
		return nil, err
	}
	defer e.dev.FreeWeight(w)
	bits := make([]uint16, n*k)
	for i := range bits { // else all of it is the kernel's one page of zeros
		bits[i] = 0x3f80
	}
	packing, err := repeated(0.2, func() error { return e.dev.LoadWeightBF16(w, 0, bits) })
	v["pack_gb_s"] = 2 * n * k / packing / 1e9
	return v, err
}

// dtype is how the configuration keeps weights.
func (e *engine) dtype() device.DType {
	if e.cfg.Model.DType == "float32" {
		return device.Float32
	}
	return device.BFloat16
}

// gemm is the rate of one product with a frozen weight.
func (e *engine) gemm(_ context.Context, r request) (values, error) {
	mat := func(rows, cols int) (device.Mat, error) {
		mem, err := e.dev.Alloc(device.F32, rows*cols)
		if err != nil {
			return device.Mat{}, err
		}
		e.dev.Upload(mem, 0, normal(rows*cols))
		return device.View(mem, rows, cols), nil
	}
	x, err := mat(r.M, r.K)
	if err != nil {
		return nil, err
	}
	defer e.dev.Free(x.Mem)
	y, err := mat(r.M, r.N)
	if err != nil {
		return nil, err
	}
	defer e.dev.Free(y.Mem)
	w, err := e.dev.NewWeight(e.dtype(), r.N, r.K)
	if err != nil {
		return nil, err
	}
	defer e.dev.FreeWeight(w)
	if err := e.dev.LoadWeight(w, 0, normal(r.N*r.K)); err != nil {
		return nil, err
	}
	product := func() { e.dev.Linear(y, x, device.Linear{W: w}) }
	if r.Op == "input-gradient" {
		product = func() { e.dev.LinearGrad(x, y, x, device.Linear{W: w}) }
	}
	seconds, err := repeated(0.3, func() error { product(); return e.dev.Sync() })
	return values{"gflops": 2 * float64(r.M) * float64(r.N) * float64(r.K) / seconds / 1e9}, err
}

// normal is n normal numbers, the same in every call.
func normal(n int) []float32 {
	random := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	return x
}

// stream is the rate at which memory is read.
func (e *engine) stream(_ context.Context, r request) (values, error) {
	return values{"gb_s": bandwidth(r.MiB<<20, e.dev.Info().Threads) / 1e9}, nil
}

// bandwidth is the bytes a second at which so many threads read a block of so many bytes again and again: the library's
// search for a byte that is not there reads in vectors.
func bandwidth(size, threads int) float64 {
	block := bytes.Repeat([]byte{1}, size)
	found := make([]int, threads)
	seconds, _ := repeated(0.5, func() error {
		var wait sync.WaitGroup
		for t := range threads {
			wait.Go(func() { found[t] = bytes.IndexByte(block[t*size/threads:(t+1)*size/threads], 0) })
		}
		wait.Wait()
		return nil
	})
	runtime.KeepAlive(found)
	return float64(size) / seconds
}
