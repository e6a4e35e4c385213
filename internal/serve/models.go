package serve

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
)

// modelCard is a model in the list of models.
type modelCard struct {
	ID      string  `json:"id"`
	Object  string  `json:"object"`
	Created int64   `json:"created"`
	OwnedBy string  `json:"owned_by"`
	Root    string  `json:"root"`
	Parent  *string `json:"parent"` // of an adapter
	Context int     `json:"max_model_len"`
}

func (s *Server) cards() []modelCard {
	s.mu.Lock()
	defer s.mu.Unlock()
	card := modelCard{ID: s.o.Name, Object: "model", Created: s.o.Now().Unix(), OwnedBy: "rubicon", Root: s.o.Name, Context: s.o.Model.Config().MaxPositions}
	list := []modelCard{card}
	for _, name := range slices.Sorted(maps.Keys(s.adapters)) {
		card.ID, card.Root, card.Parent = name, name, &s.o.Name
		list = append(list, card)
	}
	return list
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) error {
	return w.(*answer).json(map[string]any{"object": "list", "data": s.cards()})
}

func (s *Server) oneModel(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("model")
	for _, card := range s.cards() {
		if card.ID == name {
			return w.(*answer).json(card)
		}
	}
	_, err := s.set(name)
	return err
}

// health says whether requests are taken.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		return errStopped
	}
	return w.(*answer).json(map[string]string{"status": "ok"})
}

// loraRequest is the body of /v1/load_lora_adapter and /v1/unload_lora_adapter, as vLLM has them.
type loraRequest struct {
	Name string `json:"lora_name"`
	Path string `json:"lora_path"`
}

func (s *Server) loadAdapter(w http.ResponseWriter, r *http.Request) error {
	q, err := read[loraRequest](r)
	if err != nil {
		return err
	}
	dir, err := s.inside(q.Path)
	if err != nil {
		return err
	}
	if err := s.Load(r.Context(), q.Name, dir); err != nil {
		return err
	}
	return w.(*answer).json(map[string]string{"status": "loaded", "lora_name": q.Name})
}

func (s *Server) unloadAdapter(w http.ResponseWriter, r *http.Request) error {
	q, err := read[loraRequest](r)
	if err != nil {
		return err
	}
	if _, err := s.inside("."); err != nil {
		return err
	}
	if err := s.Unload(r.Context(), q.Name); err != nil {
		return err
	}
	return w.(*answer).json(map[string]string{"status": "unloaded", "lora_name": q.Name})
}

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct {
	Model    string          `json:"model"`
	Input    json.RawMessage `json:"input"`
	Encoding string          `json:"encoding_format"`
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"`
}

// embeddings answers /v1/embeddings: the mean of the last hidden states of each text.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	q, err := read[embeddingRequest](r)
	if err != nil {
		return err
	}
	set, err := s.set(q.Model)
	if err != nil {
		return err
	}
	if q.Encoding != "" && q.Encoding != "float" && q.Encoding != "base64" {
		return wrong("encoding_format", "encoding_format is %q: use float or base64", q.Encoding)
	}
	texts, err := s.prompts(q.Input, "input", true)
	if err != nil {
		return err
	}
	u := usage{}
	for i, ids := range texts {
		if n := len(ids); n == 0 || n > s.o.Model.Config().MaxPositions {
			return wrong("input", "text %d has %d tokens: 1 to %d can be embedded", i, n, s.o.Model.Config().MaxPositions)
		}
		u.PromptTokens += len(ids)
	}
	u.TotalTokens = u.PromptTokens
	vectors, err := s.engine.embed(r.Context(), texts, set)
	if err != nil {
		return err
	}
	list := make([]embedding, len(vectors))
	for i, v := range vectors {
		list[i] = embedding{"embedding", i, v}
		if q.Encoding == "base64" {
			raw := make([]byte, 0, 4*len(v))
			for _, x := range v {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			list[i].Embedding = base64.StdEncoding.EncodeToString(raw)
		}
	}
	return w.(*answer).json(map[string]any{"object": "list", "data": list, "model": q.Model, "usage": u})
}
