package rewards

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Tier is a class of questions to a judge. Each may have its own model, limits and price.
type Tier string

// The tiers. Scoring and analysis are asked for every completion, the others once a step or less.
const (
	TierScore     Tier = "score"
	TierAnalyze   Tier = "analyze"
	TierSummarize Tier = "summarize"
	TierQuery     Tier = "query"
	TierUpdate    Tier = "update" // writes and revises rubrics
)

// Question is one request to a language model that judges completions or works on rubrics.
type Question struct {
	Tier         Tier
	System, User string          // the messages; an empty System is left out
	Name         string          // of the schema: letters, digits and _
	Schema       json.RawMessage // JSON Schema of the answer; nil: any text
	// Check reads an answer strictly; what it returns is shown to the judge, which is asked once more. nil: anything
	// will do. It may be called several times.
	Check  func(answer string) error
	Sample int // tells several draws of the same question apart; they are cached one by one
}

// ErrNoAnswer is what Ask's error is if a question got no usable answer: what was to be scored by it is unscorable. Any
// other error means that no question can be answered now.
var ErrNoAnswer = errors.New("the judge gave no usable answer")

// Judge answers questions. It is safe for use by several goroutines, bounds how many questions are in flight by itself,
// and returns promptly when ctx ends.
type Judge interface {
	Ask(ctx context.Context, q Question) (answer string, err error)
}

// Run is what a provider knows of the run that it scores for.
type Run struct {
	Dir   string                // the run's folder, for what people read; "": there is none
	Seed  uint64                // of the run's random numbers
	Steps int                   // optimiser steps that it is going to make; 0: not known
	Model string                // what is trained, in words
	Lock  sync.Locker           // held while a model of the run's device computes; nil: nothing else does
	Judge func() (Judge, error) // opens the judge that the configuration names; one for all who ask
	// Notify tells the user of something that the run can go on with; nil: nobody listens.
	Notify func(text string)
	// Embedder opens what turns texts into vectors: policy (the run's own model), openai, minilm. One that needs
	// nothing is in package rubricmem.
	Embedder func(name string) (Embedder, error)
}

// Embedder turns texts into vectors, all of one length and none of them zero. It is safe for use by several goroutines.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Name() string // identifies the model: vectors of another are not comparable
}
