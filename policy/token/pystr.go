package token

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// isSpace is Python's str.isspace of one character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// strMethod is a method of str. s is the string, a its arguments.
type strMethod func(s markedText, a arguments) (any, error)

// arguments are the arguments of a method call.
type arguments struct {
	m    marks
	args *exec.VarArgs
}

// value is the argument at a position, or of a name; nil if it is not given or None.
func (a arguments) value(i int, name string) *exec.Value {
	v := a.args.KwArgs[name]
	if v == nil && i < len(a.args.Args) {
		v = a.args.Args[i]
	}
	if v == nil || v.IsNil() {
		return nil
	}
	return v
}

// text is the argument as a string without marks; ok is false if it is not given or None.
func (a arguments) text(i int, name string) (s string, ok bool, err error) {
	v := a.value(i, name)
	if v == nil {
		return "", false, nil
	}
	if !v.IsString() {
		return "", false, fmt.Errorf("argument %q is no string", v.String())
	}
	return a.m.text(v.String()).clean, true, nil
}

// texts is the argument as a string or several.
func (a arguments) texts(i int, name string) ([]string, error) {
	if v := a.value(i, name); v != nil && v.IsList() {
		var out []string
		for k := range v.Len() {
			out = append(out, a.m.text(v.Index(k).String()).clean)
		}
		return out, nil
	}
	s, ok, err := a.text(i, name)
	if err == nil && !ok {
		err = fmt.Errorf("argument %q is missing", name)
	}
	return []string{s}, err
}

// count is the argument as a number, otherwise -1.
func (a arguments) count(i int, name string) int {
	if v := a.value(i, name); v != nil && v.IsInteger() {
		return v.Integer()
	}
	return -1
}

// strMethods are the methods of str that templates call. Those of gonja mistake their default arguments, compare their
// results by Go type and know nothing of marks; the ones that remain are kept for what they still do right.
func strMethods(m marks) *exec.MethodSet[string] {
	own := map[string]strMethod{
		"strip":        func(s markedText, a arguments) (any, error) { return strip(s, a, true, true) },
		"lstrip":       func(s markedText, a arguments) (any, error) { return strip(s, a, true, false) },
		"rstrip":       func(s markedText, a arguments) (any, error) { return strip(s, a, false, true) },
		"split":        split,
		"rsplit":       rsplit,
		"splitlines":   splitLines,
		"partition":    partition,
		"startswith":   startsWith,
		"endswith":     endsWith,
		"removeprefix": removePrefix,
		"removesuffix": removeSuffix,
		"replace":      replace,
		"join":         join,
	}
	methods := map[string]exec.Method[string]{}
	for name, f := range own {
		methods[name] = func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
			if err := tooLarge(name, exec.AsValue(self), args); err != nil {
				return nil, err
			}
			return f(m.text(self), arguments{m, args})
		}
	}
	for _, name := range []string{"capitalize", "casefold", "count", "find", "format", "isalnum", "isalpha", "isascii",
		"isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "ljust", "lower", "rfind",
		"rjust", "swapcase", "title", "upper", "zfill"} {
		f, _ := builtins.Methods.Str.Get(name)
		methods[name] = func(self string, v *exec.Value, args *exec.VarArgs) (any, error) {
			if err := tooLarge(name, v, args); err != nil {
				return nil, err
			}
			out, err := f(self, v, args)
			if s := exec.AsValue(out); s.IsString() {
				return s.String(), err
			}
			return out, err
		}
	}
	return exec.NewMethodSet(methods)
}

var errSeparator = errors.New("a string that is not empty is wanted to split by")

func strip(s markedText, a arguments, left, right bool) (any, error) {
	set, given, err := a.text(0, "chars")
	drop := isSpace
	if given {
		drop = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	start, end := 0, len(s.clean)
	if right {
		end = len(strings.TrimRightFunc(s.clean, drop))
	}
	if left {
		start = end - len(strings.TrimLeftFunc(s.clean[:end], drop))
	}
	return s.cut(start, end), err
}

func split(s markedText, a arguments) (any, error) {
	sep, given, err := a.text(0, "sep")
	limit := a.count(1, "maxsplit")
	if err != nil || given && sep == "" {
		return nil, errSeparator
	}
	out, from := list{}, 0
	for limit < 0 || len(out) < limit {
		if !given {
			from += len(s.clean[from:]) - len(strings.TrimLeftFunc(s.clean[from:], isSpace))
		}
		n, width := strings.Index(s.clean[from:], sep), len(sep)
		if !given {
			n = strings.IndexFunc(s.clean[from:], isSpace)
			width = 0
		}
		if n < 0 {
			break
		}
		out = append(out, s.cut(from, from+n))
		from += n + width
	}
	if !given {
		from += len(s.clean[from:]) - len(strings.TrimLeftFunc(s.clean[from:], isSpace))
		if from == len(s.clean) {
			return out, nil
		}
	}
	return append(out, s.cut(from, len(s.clean))), nil
}

func rsplit(s markedText, a arguments) (any, error) {
	sep, given, err := a.text(0, "sep")
	limit := a.count(1, "maxsplit")
	if err != nil || limit < 0 {
		return split(s, a)
	}
	if !given || sep == "" {
		return nil, errSeparator
	}
	var ends list
	end := len(s.clean)
	for len(ends) < limit {
		n := strings.LastIndex(s.clean[:end], sep)
		if n < 0 {
			break
		}
		ends = append(list{s.cut(n+len(sep), end)}, ends...)
		end = n
	}
	return append(list{s.cut(0, end)}, ends...), nil
}

func splitLines(s markedText, a arguments) (any, error) {
	keep := a.value(0, "keepends")
	out, from := list{}, 0
	for from < len(s.clean) {
		n := strings.IndexFunc(s.clean[from:], func(r rune) bool {
			return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
		})
		if n < 0 {
			n = len(s.clean) - from
		}
		end := from + n
		next := end
		if end < len(s.clean) {
			_, w := utf8.DecodeRuneInString(s.clean[end:])
			next += w
			if strings.HasPrefix(s.clean[end:], "\r\n") {
				next++
			}
		}
		if keep != nil && keep.IsTrue() {
			end = next
		}
		out = append(out, s.cut(from, end))
		from = next
	}
	return out, nil
}

func partition(s markedText, a arguments) (any, error) {
	sep, given, err := a.text(0, "sep")
	if err != nil || !given || sep == "" {
		return nil, errSeparator
	}
	if n := strings.Index(s.clean, sep); n >= 0 {
		return list{s.cut(0, n), sep, s.cut(n+len(sep), len(s.clean))}, nil
	}
	return list{s.cut(0, len(s.clean)), "", ""}, nil
}

func startsWith(s markedText, a arguments) (any, error) {
	return anyOf(a, "prefix", func(p string) bool { return strings.HasPrefix(s.clean, p) })
}

func endsWith(s markedText, a arguments) (any, error) {
	return anyOf(a, "suffix", func(p string) bool { return strings.HasSuffix(s.clean, p) })
}

func anyOf(a arguments, name string, f func(string) bool) (any, error) {
	if len(a.args.Args) > 1 {
		return nil, fmt.Errorf("start and end are not supported")
	}
	parts, err := a.texts(0, name)
	found := false
	for _, p := range parts {
		found = found || f(p)
	}
	return found, err
}

func removePrefix(s markedText, a arguments) (any, error) {
	p, _, err := a.text(0, "prefix")
	return s.cut(len(s.clean)-len(strings.TrimPrefix(s.clean, p)), len(s.clean)), err
}

func removeSuffix(s markedText, a arguments) (any, error) {
	p, _, err := a.text(0, "suffix")
	return s.cut(0, len(strings.TrimSuffix(s.clean, p))), err
}

// replace keeps the marks of what it leaves and those of the new text.
func replace(s markedText, a arguments) (any, error) {
	old, given, err := a.text(0, "old")
	if by := a.value(1, "new"); err == nil && given && by != nil {
		limit := a.count(2, "count")
		var out strings.Builder
		from := 0
		for ; limit != 0 && old != ""; limit-- {
			n := strings.Index(s.clean[from:], old)
			if n < 0 {
				break
			}
			out.WriteString(s.cut(from, from+n) + by.String())
			from += n + len(old)
		}
		return out.String() + s.cut(from, len(s.clean)), nil
	}
	return nil, errors.New("replace needs the old and the new string")
}

func join(s markedText, a arguments) (any, error) {
	var parts []string
	if v := a.value(0, "iterable"); v != nil {
		v.Iterate(func(_, _ int, item, _ *exec.Value) bool {
			parts = append(parts, item.String())
			return true
		}, func() {})
	}
	return strings.Join(parts, s.cut(0, len(s.clean))), nil
}
