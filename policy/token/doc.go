// Package token turns text into the ids that a model was trained on, and back, exactly as Hugging Face does: byte-level
// BPE tokenizers (tokenizer.json) and chat templates.
//
// Encode walks over a text once: added tokens are cut out (added.go), what lies between is brought into NFC (nfc.go)
// and cut into words (split.go for the regular expressions of Qwen, Llama 3 and GPT-2, regex.go for any other), and each
// word's bytes are merged (bpe.go), unless it was met before (cache.go). The Unicode data in tables.go is that of Hugging
// Face tokenizers, which follows three Unicode versions. Pipeline is the same steps in github.com/sugarme/tokenizer.
//
// Chat renders templates with gonja, in an environment of our own (environment.go, pystr.go, pyvalue.go) since gonja's
// differs from Python in many details; white space is settled before it sees a template (whitespace.go). What remains:
//
//   - None is written as nothing by {{ }}, ~ and inside a list literal; + takes it for an empty string, where Jinja
//     refuses to add it
//   - what is undefined is None: "x is none" is true of it, "is defined" false of None, and using it is no error
//   - a ** b is a float, also of whole numbers
//   - {% set a, b = ... %}, recursive loops and tojson(sort_keys) are errors
//   - a string is indexed by bytes, and dicts are written without escapes in their strings, unless by the filter string
//   - include, import, extends and block are not there: a template is one file
//
// The tests count the templates of the golden files that fall into these gaps, so that the list stays true.
package token
