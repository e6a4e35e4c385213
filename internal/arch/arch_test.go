// Package arch checks the import table of docs/design.md by reading the sources.
package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rubicon-rl/rubicon/"

// allowed names, for each of our packages (longest prefix wins), the prefixes of ours that it may import.
var allowed = map[string][]string{
	"grpo":                      {},
	"rewards":                   {"grpo", "rewards", "internal/options", "internal/suggest"},
	"rewards/arco":              {"grpo", "rewards", "internal/options", "policy"},
	"rewards/amaris":            {"grpo", "rewards", "internal/options", "internal/suggest", "rubricmem"},
	"internal/analyst":          {"grpo", "internal/llm", "rewards"},
	"internal/device":           {"internal/half"},
	"internal/dist":             {},
	"internal/folder":           {},
	"internal/half":             {},
	"internal/disk":             {},
	"internal/hub":              {"internal/disk"},
	"internal/hub/datasets":     {"internal/hub", "internal/suggest", "rewards", "trainer/data"},
	"internal/mmap":             {},
	"internal/llm":              {"rewards", "internal/suggest"},
	"internal/local":            {"internal/llm", "policy"},
	"internal/minilm":           {"internal/device", "policy/safetensors"},
	"internal/remote":           {"policy"},
	"internal/options":          {"internal/suggest"},
	"internal/suggest":          {},
	"internal/device/reference": {"internal/device"},
	"internal/cpu":              {"internal/device", "internal/half"},
	"internal/embedded":         {"internal/folder"},
	"policy":                    {"internal/device", "internal/folder", "policy"},
	"policy/safetensors":        {"internal/folder", "internal/half", "internal/mmap"},
	"policy/gguf":               {"policy", "internal/device", "internal/folder", "internal/half", "internal/mmap"},
	"policy/token":              {},
	"configs":                   {"grpo", "policy", "internal/suggest"},
	"trainer":                   {"configs", "grpo", "rewards", "policy", "internal/device", "internal/disk", "internal/dist", "trainer"},
	"trainer/env":               {"grpo", "rewards", "internal/options", "policy/token"},
	"trainer/eval":              {"grpo", "rewards", "trainer/data"},
	"internal/plot":             {},
	"internal/serve":            {"policy"},
	"trainer/health":            {"trainer/track"},
	"internal/board":            {"trainer/health", "trainer/track"},
	"internal/report":           {"internal/board", "internal/plot", "rewards/criteria", "trainer/eval", "trainer/health", "trainer/track"},
	"trainer/track":             {},
	"trainer/data":              {"grpo"},
	"cmd":                       {""},
	"cuda":                      {"cuda", "internal/device", "internal/half"},
	"cuda/driver":               {},
	"rubricmem":                 {},
	"scripts":                   {""},
}

// doors are the third-party libraries that enter through one package.
var doors = map[string][]string{
	"gorgonia.org":                       {"grpo", "rewards/arco"},
	"gorgonia.org/cu":                    {"cuda"},
	"github.com/ebitengine/purego":       {"cuda", "internal/dist"},
	"github.com/sugarme/tokenizer":       {"policy/token"},
	"github.com/nikolalohinski/gonja":    {"policy/token"},
	"github.com/philippgille/chromem-go": {"rubricmem"},
	"github.com/sashabaranov/go-openai":  {"internal/llm"},
	"github.com/spf13/viper":             {"configs"},
	"github.com/santhosh-tekuri":         {"rewards/verify"},
	"github.com/sony/gobreaker":          {"internal/llm"},
	"github.com/parquet-go/parquet-go":   {"trainer/data"},
	"github.com/spf13/cobra":             {"cmd/rubicon"},
	"github.com/rogpeppe/go-internal":    {"cmd/rubicon"},
	"github.com/gofrs/flock":             {"trainer", "internal/hub"},
}

// testHelpers may be imported by tests anywhere.
var testHelpers = []string{"internal/golden", "internal/dist/disttest", "internal/hub/hubtest", "internal/llm/llmtest", "internal/device/devicetest", "internal/device/reference", "rewards/rewardtest"}

func longest[V any](m map[string]V, path string) (V, bool) {
	for p := path; p != "." && p != ""; p = filepath.ToSlash(filepath.Dir(p)) {
		if v, ok := m[p]; ok {
			return v, true
		}
	}
	var zero V
	return zero, false
}

func under(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return p == "" || path == p || strings.HasPrefix(path, p+"/") })
}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return fs.SkipDir // another module
			}
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		seen++
		return checkFile(t, path, filepath.ToSlash(rel))
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("read %d files: the walk does not cover the module", seen)
	}
}

func checkFile(t *testing.T, path, pkg string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(path, "_test.go") || under(pkg, testHelpers)
	may, listed := longest(allowed, pkg)
	for _, spec := range f.Imports {
		imp := strings.Trim(spec.Path.Value, `"`)
		if ours, ok := strings.CutPrefix(imp, module); ok {
			if ours == pkg || isTest {
				continue
			}
			if !listed {
				t.Errorf("%s: package %s has no row in the import table", path, pkg)
			} else if !under(ours, may) {
				t.Errorf("%s: %s must not import %s", path, pkg, ours)
			}
			continue
		}
		if at, ok := longest(doors, imp); ok && !under(pkg, at) && !isTest {
			t.Errorf("%s: %s enters only through %v", path, imp, at)
		}
	}
	return nil
}
