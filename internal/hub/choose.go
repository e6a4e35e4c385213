package hub

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Selection says which files of a repository are wanted. Patterns are those of the shell, except that * goes over slashes; one
// that ends in a slash means all below.
type Selection struct {
	Include []string // empty: what a model, or a data set, needs
	Exclude []string
}

// configFile is what every model has.
const configFile = "config.json"

// modelFiles are the files at a model's root that reading it may need, beside the weights.
var modelFiles = []string{
	configFile, "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "chat_template.jinja", "chat_template.json",
	"adapter_config.json", "adapter_model.safetensors", "LICENSE*", "additional_chat_templates/*.jinja",
}

// dataFiles are the patterns of a data set's files.
var dataFiles = []string{"*.parquet", "*.json", "*.jsonl", "*.json.gz", "*.jsonl.gz", "*.csv", "README.md", "LICENSE*"}

// choose picks the wanted files, or says why there are none.
func (s Selection) choose(r Repo, all []File) ([]File, error) {
	include, err := patterns(s.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := patterns(s.Exclude)
	if err != nil {
		return nil, err
	}
	wanted := func(f File) bool { return matches(include, f.Path) }
	if len(s.Include) == 0 {
		wanted = usual(r, all)
	}
	files := slices.DeleteFunc(slices.Clone(all), func(f File) bool { return !wanted(f) || matches(exclude, f.Path) })
	if len(files) == 0 {
		return nil, fmt.Errorf("of the %d files of %s none is wanted: give --include; they are %s", len(all), r, some(all))
	}
	if len(s.Include) == 0 && !r.Dataset && !hasSuffix(files, ".safetensors") {
		return nil, noWeights(r, all)
	}
	return files, nil
}

// some names a few files.
func some(files []File) string {
	var names []string
	for _, f := range files[:min(len(files), 8)] {
		names = append(names, f.Path)
	}
	if len(files) > len(names) {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}

// usual tells which files are wanted if the user does not say.
func usual(r Repo, all []File) func(File) bool {
	if r.Dataset {
		list, _ := patterns(dataFiles) // they are well formed
		return func(f File) bool { return matches(list, f.Path) }
	}
	// A folder with an index, or with model.safetensors, may hold the same weights under other names too.
	named := slices.ContainsFunc(all, func(f File) bool {
		return f.Path == "model.safetensors" || f.Path == "model.safetensors.index.json"
	})
	return func(f File) bool {
		if slices.ContainsFunc(modelFiles, func(p string) bool { ok, _ := path.Match(p, f.Path); return ok }) {
			return true
		}
		if strings.Contains(f.Path, "/") {
			return false
		}
		weights := strings.HasSuffix(f.Path, ".safetensors") || strings.HasSuffix(f.Path, ".safetensors.index.json")
		return weights && (!named || strings.HasPrefix(f.Path, "model"))
	}
}

// noWeights says what a repository without safetensors may have instead.
func noWeights(r Repo, all []File) error {
	switch {
	case hasSuffix(all, ".gguf"):
		return fmt.Errorf("%s has no safetensors, but GGUF files: choose one with --include '*Q8_0.gguf' or the like", r)
	case hasSuffix(all, ".bin"), hasSuffix(all, ".pt"), hasSuffix(all, ".pth"):
		return fmt.Errorf("%s has its weights in PyTorch's own format only, which can run code: look for a revision or copy with safetensors", r)
	}
	return fmt.Errorf("%s has no weights (safetensors): is it a data set (--dataset)? For other files give --include", r)
}

// patterns compiles patterns.
func patterns(list []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, p := range list {
		if strings.HasSuffix(p, "/") {
			p += "*"
		}
		text := regexp.QuoteMeta(p)
		text = strings.NewReplacer(`\[!`, `[^`, `\*`, `.*`, `\?`, `.`, `\[`, `[`, `\]`, `]`).Replace(text)
		re, err := regexp.Compile(`(?s)^` + text + `$`)
		if err != nil {
			return nil, fmt.Errorf("%q is no pattern: use *, ? and [abc]", p)
		}
		out = append(out, re)
	}
	return out, nil
}

func matches(list []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(name) })
}
