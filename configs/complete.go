package configs

import "strings"

// Complete is what a key=value argument that begins with text may go on to: keys, each with a =, or the values of a key that has
// only certain ones.
func Complete(text string) []string {
	var out []string
	add := func(s string) {
		if strings.HasPrefix(s, text) {
			out = append(out, s)
		}
	}
	key, _, valued := strings.Cut(text, "=")
	for _, f := range newSchema().fields {
		if !valued {
			add(f.Path + "=")
			continue
		}
		if f.Path == key {
			for _, v := range f.Enum {
				add(key + "=" + v)
			}
		}
	}
	return out
}
