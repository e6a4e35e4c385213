package main

import (
	"regexp"
	"strconv"
	"strings"
)

// kinds are the kinds of mutants.
var kinds = []string{"barrier", "shuffle", "constant", "offset", "compare"}

// mutant is PTX with one line changed.
type mutant struct {
	kind, kernel string
	line         int // from 0
	from, to     string
}

// apply returns text with the change.
func (m mutant) apply(text string) string {
	lines := strings.Split(text, "\n")
	lines[m.line] = m.to
	return strings.Join(lines, "\n")
}

var (
	entry   = regexp.MustCompile(`\.entry (\w+)`)
	integer = regexp.MustCompile(`^(@!?%p\d+ +)?(add|sub|mul|mad|div|rem|min|max|and|or|shl|shr|setp|selp|mov)\.[\w.]*[sub](16|32|64)\s`)
	mask    = regexp.MustCompile(`^(@!?%p\d+ +)?(and|or)\.`) // a negative constant keeps the upper half of a word: no index
	literal = regexp.MustCompile(`[ \t]-?\d+[,;]`)
	access  = regexp.MustCompile(`^(@!?%p\d+ +)?(ld|st)\.(global|shared)[\w.]*\s`)
	address = regexp.MustCompile(`\[([%\w]+)(\+-?\d+)?\]`)
	vector  = regexp.MustCompile(`\.v(\d)\.`)
	width   = regexp.MustCompile(`\.[sufb](8|16|32|64)\s`)
	ordered = regexp.MustCompile(`^(@!?%p\d+ +)?setp\.(lt|le|gt|ge)\.[su](16|32|64)\s`)
)

// mutants are all changes of a file of kernels, from its top.
func mutants(text string) []mutant {
	var found []mutant
	kernel := ""
	for i, line := range strings.Split(text, "\n") {
		code := strings.TrimSpace(line)
		if m := entry.FindStringSubmatch(code); m != nil {
			kernel = m[1]
		}
		add := func(kind, to string) {
			found = append(found, mutant{kind: kind, kernel: kernel, line: i, from: code, to: to})
		}
		switch {
		case strings.HasPrefix(code, "bar.sync"):
			add("barrier", "")
		case strings.Contains(code, "shfl.sync.bfly"):
			add("shuffle", below(code))
		case access.MatchString(code):
			add("offset", further(code))
		case integer.MatchString(code):
			for _, at := range literal.FindAllStringIndex(code, -1) {
				n, err := strconv.ParseInt(code[at[0]+1:at[1]-1], 10, 64)
				if err == nil && !(n < 0 && mask.MatchString(code)) {
					add("constant", code[:at[0]+1]+strconv.FormatInt(n+1, 10)+code[at[1]-1:])
				}
			}
		}
		if ordered.MatchString(code) {
			add("compare", otherBound(code))
		}
	}
	return found
}

// below makes a butterfly shuffle one from a lower lane, which has no segment to stay in.
func below(code string) string {
	return strings.Replace(strings.Replace(code, ".bfly.", ".up.", 1), ", 31, ", ", 0, ", 1)
}

// further moves a memory access by its own size.
func further(code string) string {
	bits, _ := strconv.Atoi(width.FindStringSubmatch(code)[1])
	size := bits / 8
	if v := vector.FindStringSubmatch(code); v != nil {
		n, _ := strconv.Atoi(v[1])
		size *= n
	}
	return address.ReplaceAllStringFunc(code, func(a string) string {
		parts := address.FindStringSubmatch(a)
		off, _ := strconv.Atoi(strings.TrimPrefix(parts[2], "+"))
		return "[" + parts[1] + "+" + strconv.Itoa(off+size) + "]"
	})
}

// otherBound makes a comparison strict if it is not, and the other way round.
func otherBound(code string) string {
	m := ordered.FindStringSubmatch(code)
	to := map[string]string{"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}[m[2]]
	return strings.Replace(code, "setp."+m[2], "setp."+to, 1)
}
