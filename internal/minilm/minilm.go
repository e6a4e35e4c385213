// Package minilm embeds texts with a BERT encoder from a sentence-transformers folder, such as all-MiniLM-L6-v2: config.json,
// model.safetensors, and tokenizer.json or vocab.txt. A text's vector is the mean of the last hidden states of its tokens,
// brought to length 1.
//
// Products and attention are a device's. Every token sees all others of its text: to the device each is a query of its own, at
// the last place of the path that all its text's tokens are. A text's vector does not depend on what else is embedded with it
// where the device is Invariant.
package minilm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy/safetensors"
)

// maxTokens are computed together, unless one text has more.
const maxTokens = 4096

// Encoder is an embedder. It is safe for use by several goroutines. Make it with Open, close it with Close.
type Encoder struct {
	cfg  config
	tok  *wordPieces
	name string

	mu  sync.Mutex // the device takes one user at a time
	net *net
}

// Open loads the model in a folder onto dev, which nothing else uses at the same time; Close leaves dev open.
func Open(dir string, dev device.Device) (*Encoder, error) {
	e := &Encoder{}
	var err error
	if e.cfg, err = loadConfig(dir); err != nil {
		return nil, err
	}
	if e.tok, err = loadWordPieces(dir); err != nil {
		return nil, err
	}
	if n := e.tok.size(); n > e.cfg.VocabSize {
		return nil, fmt.Errorf("%s: the tokenizer has the id %d, but the model only %d vectors: they do not belong together", dir, n-1, e.cfg.VocabSize)
	}
	set, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if e.net, err = loadNet(set, &e.cfg, dev); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), set.Close())
	}
	e.name = fmt.Sprintf("minilm %.8x", e.digest(set))
	return e, set.Close()
}

// digest is a hash of all that vectors depend on.
func (e *Encoder) digest(set *safetensors.Set) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%+v %v", e.cfg, e.tok)
	for _, name := range set.Names() {
		t, _ := set.Tensor(name)
		fmt.Fprintf(h, "%q %v %v", name, t.DType, t.Shape)
		h.Write(t.Data)
	}
	return h.Sum(nil)
}

// Name identifies the model.
func (e *Encoder) Name() string { return e.name }

// Close gives the weights' memory back.
func (e *Encoder) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.net.free()
	return nil
}

// Embed returns a vector for each text. What a text has beyond the model's length, mostly 256 tokens, is not seen.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([][]float32, 0, len(texts))
	for len(list) < len(texts) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var batch [][]int32
		tokens := 0
		for _, text := range texts[len(list):] {
			ids := e.tok.encode(text, e.cfg.maxTokens)
			if tokens += len(ids); tokens > maxTokens && len(batch) > 0 {
				break
			}
			batch = append(batch, ids)
		}
		vectors, err := e.net.embed(batch)
		if err != nil {
			return nil, fmt.Errorf("minilm: %w", err)
		}
		list = append(list, vectors...)
	}
	return list, nil
}
