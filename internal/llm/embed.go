package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sashabaranov/go-openai"
	"golang.org/x/sync/errgroup"

	"github.com/rubicon-rl/rubicon/rewards"
)

const (
	// embedTexts is how many texts go in one request: so many vectors of 4096 numbers stay below maxReply.
	embedTexts = 16
	// embedBytes is what is sent of a text: about as much as OpenAI's models take, 8191 tokens, in any language.
	embedBytes = 16 << 10
)

// Embedder turns texts into vectors by the embeddings call of a server that speaks OpenAI's protocol. It is a
// rewards.Embedder. Of a text longer than 16 KiB only the beginning is seen. What it uses is on no account and no budget.
type Embedder struct {
	client Client // for its way of trying again
	tier   tier
	server *OpenAI
	dims   int
	asked  atomic.Uint64
}

var _ rewards.Embedder = (*Embedder)(nil)

// NewEmbedder makes an Embedder; nothing is sent yet. Of o it takes what is about a server, its model and its limits, and how to
// try again; what is about answers does not matter. dims asks for vectors of another length than the model's own; 0 does not.
func NewEmbedder(o Options, dims int) (*Embedder, error) {
	o.Settings = o.Settings.over(DefaultOptions().Settings)
	o.Tiers = nil
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	err := o.check()
	if err == nil && (o.URL == "" || o.Model == "") {
		err = errors.New("it needs the URL of a server with embeddings, and the name of its model")
	}
	if err == nil && dims < 0 {
		err = fmt.Errorf("%d dimensions: give a positive number, or 0 for the model's own", dims)
	}
	if err != nil {
		return nil, fmt.Errorf("openai embedder: %w", err)
	}
	e := &Embedder{client: Client{o: o}, dims: dims}
	e.server, err = NewOpenAI(OpenAIOptions{URL: o.URL, APIKey: o.APIKey, RoundTripper: o.RoundTripper})
	if err != nil {
		return nil, fmt.Errorf("openai embedder: %w", err)
	}
	e.tier = tier{Settings: o.Settings, lane: newLane(&e.client.o, &e.client.o.Settings)}
	return e, nil
}

// Name tells the models apart, not the servers that serve them.
func (e *Embedder) Name() string {
	if e.dims > 0 {
		return fmt.Sprintf("openai %s %d", e.tier.Model, e.dims)
	}
	return "openai " + e.tier.Model
}

// Close lets go of idle connections.
func (e *Embedder) Close() error { return e.server.Close() }

// Embed returns a vector for each text. Requests go out side by side, as many as the limits allow.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	list := make([][]float32, len(texts))
	g, within := errgroup.WithContext(ctx)
	for begin := 0; begin < len(texts); begin += embedTexts {
		end := min(begin+embedTexts, len(texts))
		g.Go(func() error { return e.batch(within, texts[begin:end], list[begin:end]) })
	}
	if err := g.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("embeddings of %s at %s: %w", e.tier.Model, e.server.url, err)
	}
	return list, nil
}

// batch embeds the texts of one request, and tries again after failures that pass.
func (e *Embedder) batch(ctx context.Context, texts []string, into [][]float32) error {
	if err := e.tier.lane.slots.Acquire(ctx, 1); err != nil {
		return err
	}
	defer e.tier.lane.slots.Release(1)
	jitter := random(e.client.o.Seed, e.asked.Add(1))
	err := e.client.again(ctx, &e.tier, jitter, func() error { return e.try(ctx, texts, into) })
	switch statusOf(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the server refuses the API key: %w", err)
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("the server has no embeddings, or none of this model: %w", err)
	}
	return err
}

// try sends one request.
func (e *Embedder) try(ctx context.Context, texts []string, into [][]float32) error {
	request := openai.EmbeddingRequestStrings{
		Model: openai.EmbeddingModel(e.tier.Model), Dimensions: e.dims, EncodingFormat: openai.EmbeddingEncodingFormatFloat,
	}
	expected := 0
	for _, text := range texts {
		text = beginning(text)
		request.Input = append(request.Input, text)
		expected += tokens(text)
	}
	leave, err := e.tier.lane.enter(ctx, expected)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, e.tier.Timeout)
	defer cancel()
	w := &wire{http: e.server.http, key: e.server.key}
	response, err := e.server.through(w).CreateEmbeddings(within, request)
	if err == nil {
		err = byIndex(response.Data, into)
	} else if within.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no reply within %s: %w", e.tier.Timeout, err)
	}
	leave(err)
	return err
}

// beginning is what is sent of a text.
func beginning(text string) string {
	if len(text) <= embedBytes {
		return text
	}
	return strings.ToValidUTF8(text[:embedBytes], "") // without a character that was cut
}

// byIndex puts vectors where their index says, whatever the order in which the server sends them.
func byIndex(data []openai.Embedding, into [][]float32) error {
	if len(data) != len(into) {
		return fmt.Errorf("the server gave %d vectors for %d texts", len(data), len(into))
	}
	clear(into)
	for _, d := range data {
		switch {
		case d.Index < 0 || d.Index >= len(into):
			return fmt.Errorf("the server gave a vector for text %d of %d", d.Index, len(into))
		case into[d.Index] != nil:
			return fmt.Errorf("the server gave two vectors for text %d", d.Index)
		case len(d.Embedding) == 0 || len(d.Embedding) != len(data[0].Embedding):
			return fmt.Errorf("the server gave vectors of %d and %d numbers", len(data[0].Embedding), len(d.Embedding))
		}
		into[d.Index] = d.Embedding
	}
	return nil
}
