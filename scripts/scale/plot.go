package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Picture: two panels, and what is around each.
const (
	width, height            = 720, 300
	left, right, top, bottom = 48, 12, 44, 56
)

// panel is a plot of one quantity, both axes logarithmic.
type panel struct {
	x0, x1         float64 // plot area
	lo, hi, y0, y1 float64 // of the axes' values
	b              *strings.Builder
}

// series is one line: measured points, and the cost model's line.
type series struct {
	colour              string
	x                   []float64
	measured, predicted []float64
}

// draw writes the picture of every sweep that has one and whose points are all measured.
func (r *report) draw(dir string) error {
	var errs []error
	for _, s := range sweeps(false) {
		if s.along != nil && r.has(s) {
			errs = append(errs, os.WriteFile(filepath.Join(dir, "scale-"+s.name+".svg"), []byte(r.picture(s)), 0o644))
		}
	}
	return errors.Join(errs...)
}

func (r *report) has(s sweep) bool {
	for _, p := range s.points {
		if r.find(p) == nil {
			return false
		}
	}
	return true
}

// picture is a sweep's SVG: seconds on the left, memory on the right.
func (r *report) picture(s sweep) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#57606a">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	seconds := func(q *result) (float64, float64) { return q.Measured.median(), q.Predicted.Seconds }
	memory := func(q *result) (float64, float64) {
		return float64(q.Measured.Peak) / 1e9, float64(q.Predicted.Peak) / 1e9
	}
	for i, of := range []func(*result) (float64, float64){seconds, memory} {
		title := []string{"seconds a step", "memory of the process, GB"}[i]
		draw(&b, i, title, s.what, []series{r.series(s, true, "#1f6feb", of), r.series(s, false, "#d1582b", of)})
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d"><tspan fill="#1f6feb">with gradient checkpointing</tspan>, <tspan fill="#d1582b">without</tspan>; dots: measured, lines: cost model</text>`+"\n", left, height-8)
	return b.String() + "</svg>\n"
}

// series are a sweep's points with or without checkpointing.
func (r *report) series(s sweep, recompute bool, colour string, of func(*result) (measured, predicted float64)) series {
	out := series{colour: colour}
	for _, p := range s.points {
		if p.Recompute != recompute {
			continue
		}
		m, c := of(r.find(p))
		out.x, out.measured, out.predicted = append(out.x, float64(*s.along(&p))), append(out.measured, m), append(out.predicted, c)
	}
	return out
}

// draw draws panel i of two.
func draw(b *strings.Builder, i int, title, what string, list []series) {
	p := panel{x0: float64(i*width/2 + left), x1: float64((i+1)*width/2 - right), y0: math.Inf(1), b: b}
	x := list[0].x
	p.lo, p.hi = x[0], x[len(x)-1]
	for _, s := range list {
		for _, v := range append(s.measured, s.predicted...) {
			p.y0, p.y1 = min(p.y0, v), max(p.y1, v)
		}
	}
	ticks := p.ticks()
	fmt.Fprintf(b, `<text x="%.0f" y="24" font-size="14" fill="#24292f">%s</text>`+"\n", p.x0, html.EscapeString(title))
	for _, v := range ticks {
		fmt.Fprintf(b, `<path d="M%.0f %.1fH%.0f" stroke="#d0d7de"/><text x="%.0f" y="%.1f" text-anchor="end">%g</text>`+"\n", p.x0, p.y(v), p.x1, p.x0-6, p.y(v)+4, v)
	}
	for _, v := range x {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", p.x(v), height-bottom+16, v)
	}
	fmt.Fprintf(b, `<text x="%.0f" y="%d" text-anchor="end">%s</text>`+"\n", p.x1, height-bottom+32, html.EscapeString(what))
	for _, s := range list {
		p.series(s)
	}
}

// ticks are the values 1, 2 and 5 times a power of ten that the values lie between; the axis ends with them.
func (p *panel) ticks() (list []float64) {
	for e := math.Floor(math.Log10(p.y0)); ; e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v <= p.y0 {
				list = list[:0]
			}
			list = append(list, v)
			if v >= p.y1 {
				p.y0, p.y1 = list[0], v
				return list
			}
		}
	}
}

func (p *panel) x(v float64) float64 {
	return p.x0 + 8 + math.Log(v/p.lo)/math.Log(p.hi/p.lo)*(p.x1-p.x0-24)
}

func (p *panel) y(v float64) float64 {
	return height - bottom - math.Log(v/p.y0)/math.Log(p.y1/p.y0)*(height-top-bottom)
}

func (p *panel) series(s series) {
	var path []string
	for i, v := range s.x {
		path = append(path, fmt.Sprintf("%.1f,%.1f", p.x(v), p.y(s.predicted[i])))
		fmt.Fprintf(p.b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", p.x(v), p.y(s.measured[i]), s.colour)
	}
	fmt.Fprintf(p.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-opacity="0.6"/>`+"\n", strings.Join(path, " "), s.colour)
}
