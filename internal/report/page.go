package report

import (
	"html"
	"strings"
)

const pageHead = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Report</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#24292f}
table{border-collapse:collapse;margin:1rem 0;font-size:14px}
td,th{border:1px solid #d0d7de;padding:.25rem .6rem;text-align:left;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere}
th{background:#f6f8fa}
svg{width:100%;height:auto;margin:.5rem 0}
</style>
<h1>Report</h1>
`

// page is the report as one HTML file, which loads nothing and runs nothing.
func page(sections []section) string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range sections {
		b.WriteString("<h2>" + html.EscapeString(s.title) + "</h2>\n")
		for _, x := range s.blocks {
			switch {
			case x.figure != "":
				b.WriteString(x.figure)
			case x.head != nil:
				table(&b, x)
			default:
				b.WriteString("<p>" + html.EscapeString(x.text) + "</p>\n")
			}
		}
	}
	return b.String() + "</html>\n"
}

func table(b *strings.Builder, x block) {
	row := func(tag string, cells []string) {
		b.WriteString("<tr>")
		for _, c := range cells {
			b.WriteString("<" + tag + ">" + html.EscapeString(c) + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<table>\n")
	row("th", x.head)
	for _, r := range x.rows {
		row("td", r)
	}
	b.WriteString("</table>\n")
}
