package rubricmem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/philippgille/chromem-go"
)

// index finds documents by their vectors. Its owner's lock guards it: chromem's own has gaps.
type index struct {
	kinds map[Kind]*chromem.Collection
}

func newIndex() (*index, error) {
	db, x := chromem.NewDB(), &index{kinds: map[Kind]*chromem.Collection{}}
	never := func(context.Context, string) ([]float32, error) { return nil, errors.New("vectors are made elsewhere") }
	for _, kind := range Kinds() {
		c, err := db.CreateCollection(string(kind), nil, never)
		if err != nil {
			return nil, fmt.Errorf("memory: index: %w", err)
		}
		x.kinds[kind] = c
	}
	return x, nil
}

// add takes documents whose IDs are new.
func (x *index) add(list []entry) error {
	for i := range list {
		e := &list[i]
		err := x.kinds[e.Kind].AddDocument(context.Background(), chromem.Document{
			ID: e.ID, Metadata: map[string]string{"scope": e.Scope, "prompt": e.Prompt}, Embedding: e.vector,
		})
		if err != nil {
			return fmt.Errorf("memory: index: document %q: %w", e.ID, err)
		}
	}
	return nil
}

// search returns the d documents that are most similar to a unit vector, of each text the one with the lowest ID.
func (x *index) search(ctx context.Context, vector []float32, d int, f *Filter, get func(id string) *Doc) ([]Hit, error) {
	kinds := f.Kinds
	if len(kinds) == 0 {
		kinds = Kinds()
	}
	var hits []Hit
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		found, err := x.ofKind(ctx, kind, vector, d, f, get)
		if err != nil {
			return nil, err
		}
		hits = append(hits, found...)
	}
	hits = best(hits)
	return hits[:min(d, len(hits))], nil
}

// ofKind returns documents of one kind, among them the d most similar ones.
func (x *index) ofKind(ctx context.Context, kind Kind, vector []float32, d int, f *Filter, get func(id string) *Doc) ([]Hit, error) {
	c := x.kinds[kind]
	if c == nil {
		return nil, fmt.Errorf("memory: there is no kind of document %q: use one of %q", kind, Kinds())
	}
	where := map[string]string{}
	if f.Scope != "" {
		where["scope"] = f.Scope
	}
	if f.Prompt != "" {
		where["prompt"] = f.Prompt
	}
	for n := 2*d + 16; ; n *= 4 {
		n = min(n, c.Count())
		if n == 0 {
			return nil, nil
		}
		results, err := c.QueryEmbedding(ctx, vector, n, where, nil)
		if err != nil {
			return nil, fmt.Errorf("memory: index: %w", err)
		}
		var hits []Hit
		for _, r := range results {
			if doc := get(r.ID); f.takes(doc) {
				hits = append(hits, Hit{*doc, r.Similarity})
			}
		}
		hits = best(hits)
		all := len(results) < n || n == c.Count()
		if all || len(hits) >= d && results[len(results)-1].Similarity < hits[d-1].Similarity {
			return hits, nil
		}
	}
}

// best sorts hits by similarity, highest first, and those that are equal by ID, and drops those whose text is there already.
func best(hits []Hit) []Hit {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
	})
	seen := map[string]bool{}
	return slices.DeleteFunc(hits, func(h Hit) bool {
		twice := seen[h.Text]
		seen[h.Text] = true
		return twice
	})
}
