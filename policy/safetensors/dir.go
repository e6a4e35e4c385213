package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// The names that transformers gives to the weights of a model folder.
const (
	SingleName = "model.safetensors"
	IndexName  = "model.safetensors.index.json"
)

// Set is the tensors of a folder, whatever files they lie in. It may be used by several goroutines at a time.
type Set struct {
	Dir     string
	files   []*File
	tensors map[string]Tensor
}

// index is model.safetensors.index.json.
type index struct {
	Metadata  map[string]any    `json:"metadata"`
	WeightMap map[string]string `json:"weight_map"`
}

// OpenDir maps model.safetensors, or, if there is none, the files that model.safetensors.index.json lists. The index
// and the files must name the same tensors.
func OpenDir(dir string) (*Set, error) {
	s := &Set{Dir: dir, tensors: map[string]Tensor{}}
	_, err := os.Stat(filepath.Join(dir, SingleName))
	switch {
	case err == nil:
		err = s.add(SingleName)
	case errors.Is(err, fs.ErrNotExist):
		err = s.addIndexed()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) addIndexed() error {
	path := filepath.Join(s.Dir, IndexName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open the weights of %s: neither %s nor %s is there", s.Dir, SingleName, IndexName)
	}
	if err != nil {
		return err
	}
	var idx index
	if err := json.Unmarshal(text, &idx); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if len(idx.WeightMap) == 0 {
		return fmt.Errorf("read %s: weight_map is missing or empty", path)
	}
	files := map[string]bool{}
	for name, file := range idx.WeightMap {
		if file == "" || filepath.Base(file) != file || !filepath.IsLocal(file) {
			return fmt.Errorf("read %s: tensor %q: %q is not the name of a file in the same folder", path, name, file)
		}
		files[file] = true
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if err := s.add(file); err != nil {
			return err
		}
	}
	return s.match(path, idx.WeightMap)
}

// match checks that every tensor lies in the file that the index names, and that the index names every tensor.
func (s *Set) match(path string, weightMap map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(weightMap)) {
		if t, ok := s.tensors[name]; !ok || filepath.Base(t.File) != weightMap[name] {
			return fmt.Errorf("read %s: tensor %q is not in %s", path, name, weightMap[name])
		}
	}
	for _, name := range s.Names() {
		if _, ok := weightMap[name]; !ok {
			return fmt.Errorf("read %s: tensor %q of %s is not listed", path, name, s.tensors[name].File)
		}
	}
	return nil
}

func (s *Set) add(file string) error {
	f, err := Open(filepath.Join(s.Dir, file))
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	for name, t := range f.tensors {
		if old, twice := s.tensors[name]; twice {
			return fmt.Errorf("tensor %q is in both %s and %s", name, old.File, t.File)
		}
		s.tensors[name] = t
	}
	return nil
}

// Names lists the tensors in ascending order.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.tensors)) }

// Tensor returns one tensor; ok is false if there is none of that name.
func (s *Set) Tensor(name string) (t Tensor, ok bool) {
	t, ok = s.tensors[name]
	return t, ok
}

// Close releases the mappings; no tensor may be used afterwards.
func (s *Set) Close() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
