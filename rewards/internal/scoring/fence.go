package scoring

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
)

// Brackets that could be taken for one, two or three of a fence's.
const (
	single = "<＜‹〈⟨>＞›〉⟩"
	double = "«《≪⟪»》≫⟫"
	triple = "⋘⋙"
)

var (
	// brackets are opening or closing ones in a row, also with blanks and invisible characters between them.
	brackets = regexp.MustCompile(`(?:[<＜‹〈⟨«《≪⟪⋘][\p{Cf}\p{Mn}\p{Zs}]*)+|(?:[>＞›〉⟩»》≫⟫⋙][\p{Cf}\p{Mn}\p{Zs}]*)+`)
	// chatToken is what chat templates mark turns with, which a server may read as more than text.
	chatToken = regexp.MustCompile(`<[|｜][^<>\n]{1,64}[|｜]>|</?s>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>`)
)

// Fence encloses text that nobody vouches for, so that what stands outside of it cannot be imitated inside: the two
// lines around it carry a code that is a hash of what is between them, which no text can contain of itself, and what
// looks like such a line, or like a token of a chat template, is broken up by backslashes.
func Fence(text string) string { return enclose(escape(text)) }

func enclose(text string) string {
	sum := sha256.Sum256([]byte(text))
	code := hex.EncodeToString(sum[:8])
	return "<<<UNTRUSTED " + code + "\n" + text + "\n" + code + " UNTRUSTED>>>"
}

func escape(text string) string {
	text = brackets.ReplaceAllStringFunc(strings.ToValidUTF8(text, "\uFFFD"), breakUp)
	return chatToken.ReplaceAllStringFunc(text, func(token string) string { return token[:1] + `\` + token[1:] })
}

// breakUp puts a backslash before each bracket of a row that is as wide as a fence's.
func breakUp(row string) string {
	var out strings.Builder
	width := 0
	for _, r := range row {
		before := width
		for n, kind := range []string{single, double, triple} {
			if strings.ContainsRune(kind, r) {
				width += n + 1
			}
		}
		if width > before {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	if width < 3 {
		return row
	}
	return out.String()
}

// Conversation is the prompt as text: what it says, or its messages as "role: content" with blank lines between them.
func Conversation(p *grpo.Prompt) string {
	if len(p.Messages) == 0 {
		return p.Text
	}
	turns := make([]string, len(p.Messages))
	for i, m := range p.Messages {
		turns[i] = m.Role + ": " + m.Content
	}
	return strings.Join(turns, "\n\n")
}
