package rubricmem

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// form names the form of the log.
const form = "rubicon memory 1"

// header is the first frame of a log.
type header struct {
	Form     string `json:"form"`
	Embedder string `json:"embedder"`
	Dims     int    `json:"dims"` // length of the vectors
}

func (h header) frame() ([]byte, error) {
	text, err := json.Marshal(h)
	return appendFrame(nil, text), err
}

func readHeader(payload []byte) (h header, err error) {
	if err = json.Unmarshal(payload, &h); err != nil || h.Form != form {
		return h, fmt.Errorf("it is not the head of a %q log", form)
	}
	if h.Embedder == "" || h.Dims < 1 || h.Dims > maxDims {
		return h, fmt.Errorf("its head has the embedder %q and vectors of length %d", h.Embedder, h.Dims)
	}
	return h, nil
}

// encodeDocs is the JSON of documents.
func encodeDocs(docs []Doc) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(docs)
	return b.Bytes(), err
}

// asStored are documents as they come back from the log, which share nothing with the given ones: data has no needless spaces,
// and bytes that are no UTF-8 are replaced.
func asStored(docs []Doc) (stored []Doc, err error) {
	text, err := encodeDocs(docs)
	if err != nil {
		return nil, fmt.Errorf("memory: the data of a document: %w", err)
	}
	return stored, json.Unmarshal(text, &stored)
}

// encodeEntries is the payload of a frame of documents.
func encodeEntries(list []entry) ([]byte, error) {
	docs := make([]Doc, len(list))
	for i, e := range list {
		docs[i] = e.Doc
	}
	text, err := encodeDocs(docs)
	if err != nil {
		return nil, err
	}
	payload := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...)
	for _, e := range list {
		for _, x := range e.vector {
			payload = binary.LittleEndian.AppendUint32(payload, math.Float32bits(x))
		}
	}
	if len(payload) > maxFrame {
		return nil, fmt.Errorf("memory: documents of %d bytes at once are too many: add fewer", len(payload))
	}
	return payload, nil
}

// decodeEntries reads a payload; the vectors have dims numbers.
func decodeEntries(payload []byte, dims int) ([]entry, error) {
	if len(payload) < 4 {
		return nil, errors.New("it has no documents")
	}
	n, rest := int64(binary.LittleEndian.Uint32(payload)), payload[4:]
	if n > int64(len(rest)) {
		return nil, errors.New("its documents are longer than it is")
	}
	var docs []Doc
	if err := json.Unmarshal(rest[:n], &docs); err != nil {
		return nil, fmt.Errorf("its documents: %w", err)
	}
	rest = rest[n:]
	if len(rest) != 4*dims*len(docs) {
		return nil, fmt.Errorf("it has %d bytes of vectors for %d documents", len(rest), len(docs))
	}
	list := make([]entry, len(docs))
	for i, d := range docs {
		if err := d.check(); err != nil {
			return nil, err
		}
		vector := make([]float32, dims)
		for j := range vector {
			vector[j] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*(i*dims+j):]))
		}
		if _, err := length(vector); err != nil {
			return nil, fmt.Errorf("the vector of document %q: %w", d.ID, err)
		}
		list[i] = entry{Doc: d, vector: vector}
	}
	return list, nil
}
