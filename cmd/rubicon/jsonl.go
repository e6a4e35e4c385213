package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// filter answers every line of JSON on in with a line on out, in order. Unknown keys and bad values are errors that
// name the line.
func filter[In, Out any](in io.Reader, out io.Writer, answer func(In) (Out, error)) error {
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			var q In
			dec := json.NewDecoder(bytes.NewReader(line))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&q); err != nil {
				return errors.Join(fmt.Errorf("line %d: %w", n, err), w.Flush())
			}
			a, err := answer(q)
			if err == nil {
				err = enc.Encode(a)
			}
			if err != nil {
				return errors.Join(fmt.Errorf("line %d: %w", n, err), w.Flush())
			}
		}
		if err != nil {
			return w.Flush()
		}
	}
}
