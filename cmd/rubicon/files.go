package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/policy"
	"github.com/rubicon-rl/rubicon/policy/gguf"
	"github.com/rubicon-rl/rubicon/policy/token"
)

// modelFiles are the files of a model: a folder in Hugging Face's format, or one GGUF file.
type modelFiles struct {
	path   string
	gguf   *gguf.Model    // nil: a folder
	folder *policy.Folder // once source has opened it
}

// openFiles opens what a model's path names.
func openFiles(path string) (*modelFiles, error) {
	dir, err := modelDir(path)
	if err != nil {
		return nil, err
	}
	f := &modelFiles{path: dir}
	if strings.EqualFold(filepath.Ext(dir), ".gguf") {
		f.gguf, err = gguf.OpenModel(dir)
	}
	return f, err
}

func (f *modelFiles) close() (err error) {
	if f.gguf != nil {
		err = f.gguf.Close()
	}
	if f.folder != nil {
		err = errors.Join(err, f.folder.Close())
	}
	return err
}

// source is where the weights are, open until close.
func (f *modelFiles) source() (policy.Source, error) {
	if f.gguf != nil {
		return f.gguf, nil
	}
	if f.folder == nil {
		var err error
		if f.folder, err = policy.OpenFolder(f.path); err != nil {
			return nil, err
		}
	}
	return f.folder, nil
}

// tokenizerFiles are the tokenizer's files by name.
func (f *modelFiles) tokenizerFiles() (map[string][]byte, error) {
	if f.gguf != nil {
		return f.gguf.TokenizerFiles()
	}
	return gguf.ReadTokenizer(f.path)
}

func (f *modelFiles) config() (policy.Config, error) {
	if f.gguf != nil {
		return f.gguf.Config(), nil
	}
	return policy.ReadConfig(f.path)
}

func (f *modelFiles) tokenizer() (*token.Tokenizer, error) {
	if f.gguf == nil {
		return token.Load(f.path)
	}
	files, err := f.tokenizerFiles()
	if err != nil {
		return nil, err
	}
	return token.New(f.path, files)
}

// stored tells the types of the tensors, after the files are closed too; nil for a folder, of which config.json says what most are.
func (f *modelFiles) stored(c policy.Config) func(name string) device.DType {
	if f.gguf == nil {
		return nil
	}
	types := map[string]device.DType{}
	for _, p := range c.Parameters() {
		types[p.Name] = f.gguf.Stored(p.Name).DType()
	}
	return func(name string) device.DType { return types[name] }
}

func (f *modelFiles) load(ctx context.Context, dev device.Device, o policy.LoadOptions) (*policy.Model, error) {
	if f.gguf != nil {
		return policy.LoadFrom(ctx, dev, f.gguf, o)
	}
	return policy.Load(ctx, dev, f.path, o)
}

func (f *modelFiles) fingerprint() (string, error) {
	src, err := f.source()
	if err != nil {
		return "", err
	}
	return policy.Fingerprint(src), nil
}
