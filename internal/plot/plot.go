// Package plot draws lines as SVG pictures.
package plot

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Picture and plot area.
const (
	width, height         = 720, 300
	left, right, top, low = 56, 16, 40, 40
)

var colours = []string{"#1f6feb", "#d1582b", "#2da44e", "#8250df", "#9a6700", "#57606a"}

// Point is a value at a step. Where Low and High differ, they are drawn as an interval.
type Point struct{ X, Y, Low, High float64 }

// Line is a sequence of points. Lines of one Name have one colour, and it stands in the legend once.
type Line struct {
	Name   string
	Label  string // of the values, for the caller
	Points []Point
	Marked bool // few points: dots, joined by dashes
}

// SVG is a picture of lines over steps, with a title and a note below.
func SVG(title, note string, lines []Line) string {
	p := scale(lines)
	var b, marks strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#57606a">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="15" fill="#24292f">%s</text>`+"\n", left, html.EscapeString(title))
	for v := p.lo; v <= p.hi+p.unit/2; v += p.unit {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#d0d7de"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n", left, p.y(v), width-right, left-8, p.y(v)+4, v)
	}
	for i := range 6 {
		s := math.Round(p.last * float64(i) / 5)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", p.x(s), height-low+18, s)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">step</text>`+"\n", width-right, height-4)
	fmt.Fprintf(&b, `<text x="%d" y="20" text-anchor="end">`, width-right)
	colour := map[string]string{}
	for _, l := range lines {
		if colour[l.Name] == "" {
			colour[l.Name] = colours[len(colour)%len(colours)]
			fmt.Fprintf(&b, `&#160; <tspan fill="%s">%s</tspan>`, colour[l.Name], html.EscapeString(l.Name))
		}
		p.draw(&marks, l, colour[l.Name])
	}
	fmt.Fprintf(&b, "</text>\n"+`<text x="%d" y="%d">%s</text>`+"\n", left, height-4, html.EscapeString(note))
	return b.String() + marks.String() + "</svg>\n"
}

// axes map values to the picture.
type axes struct{ last, lo, hi, unit float64 }

// scale makes room for all points, from 0 on, with round marks.
func scale(lines []Line) axes {
	p := axes{last: 1}
	for _, l := range lines {
		for _, q := range l.Points {
			p.last, p.lo, p.hi = max(p.last, q.X), min(p.lo, q.Y, q.Low), max(p.hi, q.Y, q.High)
		}
	}
	if p.hi == p.lo {
		p.hi++
	}
	p.unit = math.Pow(10, math.Floor(math.Log10(p.hi-p.lo)))
	if (p.hi-p.lo)/p.unit < 2 {
		p.unit /= 5
	}
	p.lo, p.hi = math.Floor(p.lo/p.unit)*p.unit, math.Ceil(p.hi/p.unit)*p.unit
	return p
}

func (p axes) x(step float64) float64 { return left + step/p.last*(width-left-right) }
func (p axes) y(v float64) float64 {
	return height - low - (v-p.lo)/(p.hi-p.lo)*(height-top-low)
}

func (p axes) draw(b *strings.Builder, l Line, colour string) {
	var path []string
	for _, q := range l.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", p.x(q.X), p.y(q.Y)))
		if q.Low < q.High {
			fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="%s" stroke-width="2" stroke-opacity="0.5"/>`+"\n", p.x(q.X), p.y(q.Low), p.y(q.High), colour)
		}
		if l.Marked {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", p.x(q.X), p.y(q.Y), colour)
		}
	}
	dash := `1" stroke-opacity="0.5"`
	if l.Marked {
		dash = `2" stroke-dasharray="4 4"`
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%s/>`+"\n", strings.Join(path, " "), colour, dash)
}
