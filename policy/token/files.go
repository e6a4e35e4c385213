package token

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Files are the files of a tokenizer by name, as in a model's folder.
type Files map[string][]byte

// readFiles reads the files of a folder that belong to its tokenizer. Only tokenizer.json has to be there.
func readFiles(dir string) (Files, error) {
	names := []string{tokenizerFile, configFile, specialsFile, templateFile}
	more, err := os.ReadDir(filepath.Join(dir, templatesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list chat templates: %w", err)
	}
	for _, f := range more {
		if strings.HasSuffix(f.Name(), ".jinja") {
			names = append(names, filepath.Join(templatesDir, f.Name()))
		}
	}
	files := Files{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && name != tokenizerFile {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read tokenizer: %w", err)
		}
		files[name] = b
	}
	return files, nil
}

// WriteFiles writes the tokenizer's files, as they are, into a folder, for a checkpoint to be whole.
func (t *Tokenizer) WriteFiles(dir string) error { return t.files.Write(dir) }

// Write writes the files into a folder.
func (f Files) Write(dir string) error {
	for name, b := range f {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write tokenizer: %w", err)
		}
	}
	return nil
}
