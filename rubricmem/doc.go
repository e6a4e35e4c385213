// Package rubricmem is the evaluation memory of a run: documents that say what was seen and done at each step, found again by
// what they mean.
//
// # What is kept
//
// A Doc is an analysis of a completion, the summary of a chunk or a step, or the record of an update. It is embedded once,
// when it is added; its vector stands in the log beside it, so that a restart embeds nothing.
//
// # The log
//
// Memory is rebuilt from one file, memory.log, that only grows. Every Add appends one frame and has it on disk (fsync) before
// it returns. A frame is
//
//	length uint32 | CRC-32C of the length | CRC-32C of the payload | payload        all little endian
//
// The length has a sum of its own, so that a frame that breaks off (its writer was killed: Open cuts it away, and Torn tells)
// is not mistaken for one that was damaged (Open refuses, with a *DamageError that has the place). The first frame's payload
// is a JSON object with the form of the file, the embedder's name and the vectors' length. The others are: uint32 length of a
// JSON array of documents, that array, and the documents' unit vectors as float32.
//
// # Search
//
// The vectors are in chromem-go collections, one for each kind. chromem compares the query with every document, so that what
// it finds is exact; but it breaks ties at random, and where it cuts its list is a matter of chance among equals. Search asks
// for more until nothing that is left out can be a tie, and sorts by similarity and then by ID: the same memory gives the same
// answer.
package rubricmem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kind is what a document says something about.
type Kind string

// The kinds of documents.
const (
	Analysis     Kind = "analysis"      // of one completion
	ChunkSummary Kind = "chunk_summary" // of some analyses of a step
	StepSummary  Kind = "step_summary"
	UpdateRecord Kind = "update_record" // what was changed in a rubric, and why
)

// Kinds lists the kinds of documents.
func Kinds() []Kind { return []Kind{Analysis, ChunkSummary, StepSummary, UpdateRecord} }

// Doc is a document.
type Doc struct {
	ID      string          `json:"id"`
	Kind    Kind            `json:"kind"`
	Scope   string          `json:"scope,omitempty"`  // of the rubric that it is about
	Prompt  string          `json:"prompt,omitempty"` // the prompt's ID, if it is about one
	Step    int             `json:"step"`
	Version int             `json:"version"` // of the rubric
	Text    string          `json:"text"`    // what is embedded and shown
	Data    json.RawMessage `json:"data,omitempty"`
}

// Filter chooses documents. Its zero value takes all.
type Filter struct {
	Kinds  []Kind // nil: all
	Scope  string // "": all
	Before int    // only documents of steps < Before; 0: all
	Prompt string // "": all
}

// takes tells whether the filter lets a document through.
func (f *Filter) takes(d *Doc) bool {
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, d.Kind)) && (f.Scope == "" || f.Scope == d.Scope) &&
		(f.Prompt == "" || f.Prompt == d.Prompt) && (f.Before == 0 || d.Step < f.Before)
}

// Hit is a document that was found. Similarity is the cosine of its vector and the query's.
type Hit struct {
	Doc
	Similarity float32 `json:"similarity"`
}

// Embedder turns texts into vectors, all of one length and none of them zero. It is safe for use by several goroutines.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Name() string // identifies the model: vectors of another are not comparable
}

// check reports what is wrong with a document that is to be added.
func (d *Doc) check() error {
	switch {
	case d.ID == "":
		return errors.New("memory: a document has no ID")
	case !slices.Contains(Kinds(), d.Kind):
		return fmt.Errorf("memory: document %q has the kind %q: use one of %q", d.ID, d.Kind, Kinds())
	case strings.TrimSpace(d.Text) == "":
		return fmt.Errorf("memory: document %q has no text, which is what it is found by", d.ID)
	}
	return nil
}
