package instruct

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

var (
	placeholder = pytext.MustCompile(`\[.*?\]`, "")
	starBullet  = pytext.MustCompile(`^\s*\*[^\*].*$`, "m")
	dashBullet  = pytext.MustCompile(`^\s*-.*$`, "m")
	highlight   = pytext.MustCompile(`\*[^\n\*]*\*`, "")
	bold        = pytext.MustCompile(`\*\*[^\n\*]*\*\*`, "")
	angled      = pytext.MustCompile(`<<[^\n]+>>`, "")
	postPS      = pytext.MustCompile(`\s*p\.\s?s\..*$`, "m")
	postPPS     = pytext.MustCompile(`\s*p\.\s?p\.\s?s.*$`, "m")
)

func count(re *regexp.Regexp, s string) int { return len(re.FindAllStringIndex(s, -1)) }

// numberPlaceholders: at least so many [bracketed] pieces.
func numberPlaceholders(a *arguments) func(string) bool {
	want := a.number("num_placeholders")
	return func(s string) bool { return count(placeholder, s) >= want }
}

// postscript: the marker occurs anywhere in the lower-cased response.
func postscript(a *arguments) func(string) bool {
	marker := pytext.Strip(a.text("postscript_marker"))
	re := postPS
	switch marker {
	case "P.S.":
	case "P.P.S":
		re = postPPS
	default:
		re = a.pattern("postscript_marker", `\s*`+pytext.Lower(marker)+`.*$`, "m")
	}
	return func(s string) bool { return re.MatchString(pytext.Lower(s)) }
}

// numberBulletLists: exactly so many lines that start with "* " or "-".
func numberBulletLists(a *arguments) func(string) bool {
	want := a.number("num_bullets")
	return func(s string) bool { return count(starBullet, s)+count(dashBullet, s) == want }
}

// constrainedResponse: one of three fixed answers occurs.
func constrainedResponse(*arguments) func(string) bool {
	options := []string{"My answer is yes.", "My answer is no.", "My answer is maybe."}
	return func(s string) bool {
		return slices.ContainsFunc(options, func(o string) bool { return strings.Contains(s, o) })
	}
}

// numberHighlightedSections: at least so many *highlighted* or **highlighted** pieces that are not blank inside.
func numberHighlightedSections(a *arguments) func(string) bool {
	want := a.number("num_highlights")
	return func(s string) bool {
		n := 0
		for _, h := range append(highlight.FindAllString(s, -1), bold.FindAllString(s, -1)...) {
			if !pytext.Blank(strings.Trim(h, "*")) {
				n++
			}
		}
		return n >= want
	}
}

// multipleSections: at least so many headings, the splitter followed by a number.
func multipleSections(a *arguments) func(string) bool {
	splitter := pytext.Strip(a.text("section_spliter"))
	heading := a.pattern("section_spliter", `\s?`+splitter+`\s?\d+\s?`, "")
	want := a.number("num_sections")
	return func(s string) bool { return count(heading, s) >= want }
}

// jsonFormat: all of the response, a fence around it left out, is JSON as Python's json module takes it.
func jsonFormat(*arguments) func(string) bool {
	return func(s string) bool {
		s = pytext.Strip(s)
		for _, fence := range []string{"```json", "```Json", "```JSON", "```"} {
			s = strings.TrimPrefix(s, fence)
		}
		return validJSON(pytext.Strip(strings.TrimSuffix(s, "```")))
	}
}

// title: some <<title>> on one line is not blank inside.
func title(*arguments) func(string) bool {
	return func(s string) bool {
		return slices.ContainsFunc(angled.FindAllString(s, -1), func(t string) bool {
			return !pytext.Blank(strings.TrimRight(strings.TrimLeft(t, "<"), ">"))
		})
	}
}
