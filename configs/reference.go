package configs

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

const referenceHead = `# Configuration reference

Written by ` + "`go test ./configs -run TestReference -update`" + ` from the same tags that loading and checking use.

A run is configured by one or more YAML files (` + "`-c FILE`" + `, later ones win), then environment variables
(` + "`RUBICON_OPTIM_LEARNING_RATE=1e-5`" + `), then ` + "`key=value`" + ` arguments (` + "`optim.learning_rate=1e-5`" + `). A list is replaced
as a whole; a mapping is replaced key by key, and emptied by null. Everything that is not understood is an error.
` + "`rubicon config print`" + ` shows the result, ` + "`rubicon config check`" + ` all that is wrong with it, ` + "`rubicon config schema`" + ` the
JSON Schema for editors.

The names of TRL's GRPOConfig, TrainingArguments and ModelConfig may be used at the top level of a file and as
` + "`key=value`" + `; each means one of the keys below. See the tables at the end, also for the names
of verl and OpenRLHF.
`

// Reference writes the configuration reference in Markdown.
func Reference(w io.Writer) error {
	b := bufio.NewWriter(w)
	s, d := newSchema(), Default()
	fmt.Fprint(b, referenceHead)
	table := func(title, doc, path string) {
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n| key | type | default | meaning |\n|---|---|---|---|\n", title, doc)
		for _, f := range s.fields {
			if f.Section() == path {
				fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Key(), f.typeText(), code(oneLine(toNode(f.get(d)))), cell(f.Doc))
			}
		}
	}
	table("Top level", "The run itself.", "")
	for _, x := range s.sections {
		if t, _ := s.typeAt(x.path); t.NumField() == 0 {
			fmt.Fprintf(b, "\n## %s\n\n%s No settings yet.\n", x.path, x.doc)
			continue
		}
		table(x.path, x.doc, x.path)
	}
	names := func(title, doc string, list []alias) {
		fmt.Fprintf(b, "\n## %s\n\n%s\n\n| name | its default | here |\n|---|---|---|\n", title, doc)
		for _, a := range list {
			means := cell(a.means())
			if _, ok := s.field(a.path); ok {
				means = code(a.path)
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", a.name, code(a.def), means)
		}
	}
	foreign := "A name that is ignored or refused is always accepted with its default as value."
	names("Names of TRL: GRPOConfig", foreign, trlNames())
	names("Names of TRL: TrainingArguments", foreign, trainingNames())
	names("Names of TRL: ModelConfig and scripts", foreign, modelNames())
	names("Names of TRL: SFTConfig", "Those that the other tables lack.", sftNames())
	names("Names of verl", "In verl's sections or as dotted keys. Each is noted when a run is started with it. The last step of a name may be `*`: all others below it.", verlNames())
	names("Names of OpenRLHF", "Its flags since 0.10, without their dashes.", openRLHFNames())
	return b.Flush()
}

func (s *schema) typeAt(path string) (reflect.Type, bool) {
	t := reflect.TypeFor[Config]()
	for key := range strings.SplitSeq(path, ".") {
		found := false
		for i := range t.NumField() {
			if yamlKey(t.Field(i)) == key {
				t, found = t.Field(i).Type, true
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return t, true
}

// typeText is the type of a key with its bounds, for people.
func (f field) typeText() string {
	if f.Enum != nil {
		return cell(strings.Join(f.Enum, " | "))
	}
	text := typeName(f.Type)
	if f.Type.Kind() == reflect.Pointer {
		text += " or null"
	}
	if f.Min != nil {
		text += fmt.Sprintf(", at least %v", *f.Min)
	}
	if f.Above != nil {
		text += fmt.Sprintf(", above %v", *f.Above)
	}
	if f.Max != nil {
		text += fmt.Sprintf(", at most %v", *f.Max)
	}
	return text
}

func oneLine(n *yaml.Node) string {
	n.Style |= yaml.FlowStyle
	out, err := yaml.Marshal(n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + cell(s) + "`"
}

// cell makes text safe for a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
