package instruct

import (
	"slices"
	"strings"

	"github.com/rubicon-rl/rubicon/rewards/internal/pytext"
)

// csvCity: seven rows under one fixed heading.
func csvCity(*arguments) func(string) bool {
	heading := strings.Fields("ID Country City Year Count")
	return func(s string) bool {
		rows, ok := readCSV(s, ',')
		return ok && len(rows) == 8 && slices.Equal(rows[0], heading) && !slices.ContainsFunc(rows, notFive)
	}
}

func notFive(row []string) bool { return len(row) != 5 }

// The headings that csvSpecialCharacter and csvQuotes want, each name with or without quotation marks.
var (
	productHeading = pytext.MustCompile(heading(`,[ \t]*`, "ProductID Category Brand Price Stock"), "")
	studentHeading = pytext.MustCompile(heading(`\t *`, "StudentID Subject Grade Semester Score"), "")
	specialField   = pytext.MustCompile(`\A".*[^\d\w\s].*"`, "")
)

func heading(separator, names string) string {
	var fields []string
	for _, n := range strings.Fields(names) {
		fields = append(fields, `(?:`+n+`|"`+n+`")`)
	}
	return `\A` + strings.Join(fields, separator) + `\z`
}

// quotedCSV reads CSV with the quotation marks kept in the fields. It is not ok without the heading.
func quotedCSV(s string, separator byte, hasHeading func(string) bool) ([][]string, bool) {
	first, _, _ := strings.Cut(s, "\n")
	if !hasHeading(pytext.Strip(first)) {
		return nil, false
	}
	return readCSV(strings.ReplaceAll(s, `"`, `"""`), separator)
}

// csvSpecialCharacter: fourteen rows, one of which has a field with a special character in quotation marks. The rows
// behind that one may have any length.
func csvSpecialCharacter(*arguments) func(string) bool {
	return func(s string) bool {
		rows, ok := quotedCSV(s, ',', productHeading.MatchString)
		if !ok || len(rows) != 15 {
			return false
		}
		for _, row := range rows[1:] {
			if notFive(row) {
				return false
			}
			if slices.ContainsFunc(row, specialField.MatchString) {
				return true
			}
		}
		return false
	}
}

// csvQuotes: three rows with tabs, every field in quotation marks.
func csvQuotes(*arguments) func(string) bool {
	unquoted := func(field string) bool {
		field = pytext.Strip(field)
		return !strings.HasPrefix(field, `"`) || !strings.HasSuffix(field, `"`)
	}
	return func(s string) bool {
		rows, ok := quotedCSV(s, '\t', studentHeading.MatchString)
		return ok && len(rows) == 4 && !slices.ContainsFunc(rows, func(row []string) bool {
			return notFive(row) || slices.ContainsFunc(row, unquoted)
		})
	}
}

// csvReader is Python's csv.reader, which forgives what encoding/csv does not: quotation marks inside fields, text behind
// a closing one, rows of any length, empty rows, a quotation that never ends.
type csvReader struct {
	rows      [][]string
	row       []string
	field     strings.Builder
	separator byte
	state     csvState
}

type csvState int

const (
	rowStart     csvState = iota
	fieldStart            // behind a separator
	inField               // in a field without quotation marks, or behind the closing one
	inQuotes              // in quotation marks
	quoteInQuote          // behind a quotation mark in quotation marks: the closing one, or the first of two
	rowEnd                // behind \r: only the line's end may follow
)

// readCSV reads all rows; ok is false where Python has an error, a carriage return inside a line.
func readCSV(s string, separator byte) (rows [][]string, ok bool) {
	r := &csvReader{separator: separator}
	for line := range strings.SplitAfterSeq(s, "\n") {
		if line == "" {
			continue
		}
		for i := range len(line) {
			if !r.take(line[i]) {
				return nil, false
			}
		}
		r.endLine()
	}
	if r.state == inQuotes {
		r.endField()
		r.rows = append(r.rows, r.row)
	}
	return r.rows, true
}

// take reads one byte. It is false where Python has an error.
func (r *csvReader) take(c byte) bool {
	newline := c == '\n' || c == '\r'
	switch {
	case r.state == rowEnd:
		return newline
	case r.state == rowStart && newline:
		r.state = rowEnd
	case r.state == inQuotes && c == '"':
		r.state = quoteInQuote
	case r.state == inQuotes:
		r.field.WriteByte(c)
	case r.state == quoteInQuote && c == '"':
		r.field.WriteByte(c)
		r.state = inQuotes
	case newline:
		r.endField()
		r.state = rowEnd
	case c == r.separator:
		r.endField()
		r.state = fieldStart
	case c == '"' && r.state != inField && r.state != quoteInQuote:
		r.state = inQuotes
	default:
		r.field.WriteByte(c)
		r.state = inField
	}
	return true
}

func (r *csvReader) endField() {
	r.row = append(r.row, r.field.String())
	r.field.Reset()
}

// endLine ends the row, unless a quotation goes on.
func (r *csvReader) endLine() {
	switch r.state {
	case inQuotes:
		return
	case fieldStart, inField, quoteInQuote:
		r.endField()
	}
	r.rows = append(r.rows, r.row)
	r.row, r.state = nil, rowStart
}
