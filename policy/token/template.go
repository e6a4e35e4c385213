package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// template is a chat template.
type template struct {
	file     string // where it stands
	source   string
	compiled *exec.Template
	err      error // why it does not compile
}

// templatesJSON is chat_template of tokenizer_config.json: one template, or [{"name": ..., "template": ...}, ...].
type templatesJSON map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (t *templatesJSON) UnmarshalJSON(b []byte) error {
	*t = templatesJSON{}
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if one != nil {
			(*t)["default"] = *one
		}
		return nil
	}
	var several []struct{ Name, Template *string }
	if err := json.Unmarshal(b, &several); err != nil {
		return fmt.Errorf("chat_template is neither a string nor a list: %w", err)
	}
	for i, s := range several {
		if s.Name == nil || s.Template == nil {
			return fmt.Errorf("chat_template %d has no name or no template", i)
		}
		(*t)[*s.Name] = *s.Template
	}
	return nil
}

// readTemplates reads the chat templates. Files win over tokenizer_config.json, as in transformers.
func (f Files) readTemplates(from string, fromConfig templatesJSON) (map[string]*template, error) {
	out := map[string]*template{}
	for file, b := range f {
		name, ok := strings.CutSuffix(filepath.Base(file), ".jinja")
		if !ok {
			continue
		}
		if _, other := f[filepath.Join(templatesDir, "default.jinja")]; file == templateFile && other {
			continue
		} else if file == templateFile {
			name = "default"
		}
		path := filepath.Join(from, file)
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("read chat template: %s is not UTF-8", path)
		}
		out[name] = newTemplate(path, string(b))
	}
	if len(out) == 0 {
		for name, source := range fromConfig {
			out[name] = newTemplate(filepath.Join(from, configFile), source)
		}
	}
	return out, nil
}

func newTemplate(file, source string) *template {
	t := &template{file: file, source: source}
	t.compiled, t.err = compile(source, marks{})
	return t
}

// Bounds on a template's source: the compiler recurses into it, and a Go program cannot recover from a stack overflow.
const (
	maxTemplate = 1 << 18 // bytes
	maxNesting  = 200     // open brackets
	maxCalls    = 100     // macros inside macros
	maxRange    = 100000  // elements of range(), as in Jinja's sandbox
)

// compile prepares a template whose string methods respect marks.
func compile(source string, m marks) (compiled *exec.Template, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the template engine fails on it: %v", p)
		}
	}()
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("it is longer than %d bytes", maxTemplate)
	}
	if source, err = tagSource(source); err != nil {
		return nil, err
	}
	loader, err := loaders.NewMemoryLoader(map[string]string{"/chat": source})
	if err != nil {
		return nil, err
	}
	options := config.New()
	options.KeepTrailingNewline = true // tagSource has seen to white space
	compiled, err = exec.NewTemplate("/chat", options, loader, environment(m))
	if inner := errors.Unwrap(err); inner != nil { // the outer error repeats the whole source
		err = inner
	}
	if err == nil {
		err = meter(compiled)
	}
	return compiled, err
}

// render runs a compiled template.
func render(compiled *exec.Template, variables map[string]any, now time.Time) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = "", fmt.Errorf("the template engine fails: %v", p)
		}
	}()
	b := newBudget(inputSize(variables))
	all := exec.NewContext(map[string]any{"strftime_now": strftimeNow(now), budgetName: b})
	for name, value := range variables {
		all.Set(name, value)
	}
	text, err = compiled.ExecuteToString(all)
	if err != nil {
		return "", errors.New(rootCause(err))
	}
	if b.left == 0 { // where an error is no value, as in the condition of a loop
		return "", errBudget
	}
	return text, nil
}

// rootCause is what the innermost error says; gonja puts in front of it every place that it passed.
func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if c, ok := err.(interface{ Cause() error }); ok && c.Cause() != err {
			inner = c.Cause()
		}
		if inner == nil {
			break
		}
		err = inner
	}
	text := err.Error()
	if n := len(text); n > 300 {
		text = "..." + strings.ToValidUTF8(text[n-300:], "")
	}
	return text
}
