package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The plot has a panel for each class: speed to the right, ratio upwards, both
// logarithmic. What no other codec beats in both is joined by a line.
const (
	columns          = 3
	panelW, panelH   = 330, 240
	left, right      = 46, 14 // inside a panel, around the axes
	above, below     = 30, 36
	dotPeer, dotOurs = "#5b7083", "#d9480f"
)

// axis is a logarithmic one.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*math.Log(v/a.low)/math.Log(a.high/a.low)
}

// ticks are 1, 2 and 5 of each decade, or 1 only when there are many decades.
func (a axis) ticks() []float64 {
	steps := []float64{1, 2, 5}
	if a.high/a.low > 50 {
		steps = steps[:1]
	}
	var list []float64
	for decade := math.Pow(10, math.Floor(math.Log10(a.low))); decade <= a.high; decade *= 10 {
		for _, s := range steps {
			if v := s * decade; v >= a.low && v <= a.high {
				list = append(list, v)
			}
		}
	}
	return list
}

// plot draws all classes as SVG.
func plot(classes []class) []byte {
	rows := (len(classes) + columns - 1) / columns
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="11">
<title>Speed against ratio: the reel beside ffmpeg's lossless codecs</title>
<rect width="100%%" height="100%%" fill="#fff"/>
`, columns*panelW, rows*panelH+24)
	sorted := slices.Clone(classes) // the formats one after another
	slices.SortStableFunc(sorted, func(a, b class) int { return strings.Compare(string(a.format.Pixels), string(b.format.Pixels)) })
	for i, c := range sorted {
		c.panel(&b, float64(i%columns*panelW), float64(i/columns*panelH))
	}
	fmt.Fprintf(
		&b,
		`<text x="%d" y="%d" fill="#333">right: faster, MB of pixels a second (one thread; the hollow point: two) · up: smaller, pixels ÷ file · line: what no other codec beats in both</text>
</svg>
`,
		left,
		rows*panelH+14,
	)
	return b.Bytes()
}

// panel draws one class with its corner at x, y.
func (c class) panel(b *bytes.Buffer, x, y float64) {
	sx := axis{math.Inf(1), 0, x + left, x + panelW - right}
	sy := axis{math.Inf(1), 0, y + panelH - below, y + above}
	for _, m := range c.all {
		sx.low, sx.high = min(sx.low, m.speed/1.6), max(sx.high, m.speed*1.8)
		sy.low, sy.high = min(sy.low, m.ratio/1.4), max(sy.high, m.ratio*1.5)
	}
	fmt.Fprintf(b, `<g><text x="%.0f" y="%.0f" font-weight="600" fill="#111">%s, %s</text>`+"\n", x+left, y+20, c.scene, c.format.Pixels)
	for _, v := range sx.ticks() {
		fmt.Fprintf(
			b,
			`<path d="M%.1f %.1fV%.1f" stroke="#e6e6e6"/><text x="%.1f" y="%.1f" text-anchor="middle" fill="#666">%g</text>`+"\n",
			sx.at(v),
			sy.from,
			sy.to,
			sx.at(v),
			sy.from+14,
			v,
		)
	}
	for _, v := range sy.ticks() {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#e6e6e6"/><text x="%.1f" y="%.1f" text-anchor="end" fill="#666">%g</text>`+"\n",
			sx.from, sy.at(v), sx.to, sx.from-5, sy.at(v)+4, v)
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1fH%.1f" fill="none" stroke="#888"/>`+"\n", sx.from, sy.to, sy.from, sx.to)
	c.front(b, sx, sy)
	c.dots(b, sx, sy)
	b.WriteString("</g>\n")
}

// dots draws the codecs, from the highest down, so that a name that would lie
// on the one above it can be moved.
func (c class) dots(b *bytes.Buffer, sx, sy axis) {
	all := slices.Clone(c.all)
	slices.SortFunc(all, func(a, b measured) int { return cmp.Compare(b.ratio, a.ratio) })
	var taken [][2]float64
	for _, m := range all {
		x, y := sx.at(m.speed), sy.at(m.ratio)
		fill, ink, size := dotPeer, dotPeer, 4.0
		if m.codec == reelName {
			fill, ink, size = dotOurs, dotOurs, 5.5
		}
		if m.threads > 1 {
			fill = "#fff"
		}
		fmt.Fprintf(
			b,
			`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" stroke="%s" stroke-width="1.5"><title>%s, %d thread(s): %.0f MB/s, ratio %.1f</title></circle>`+"\n",
			x,
			y,
			size,
			fill,
			ink,
			m.codec,
			m.threads,
			m.speed,
			m.ratio,
		)
		if m.threads > 1 {
			continue
		}
		anchor, at := "start", [2]float64{x + 8, y + 4}
		switch {
		case m.codec == reelName:
			anchor, at = "middle", [2]float64{x, y - 9}
		case x > sx.to-50:
			anchor, at[0] = "end", x-8
		}
		for _, t := range taken {
			if math.Abs(t[0]-at[0]) < 60 && at[1]-t[1] < 11 {
				at[1] = t[1] + 11
			}
		}
		taken = append(taken, at)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>`+"\n", at[0], at[1], anchor, ink, m.codec)
	}
}

// front draws the Pareto front of one thread.
func (c class) front(b *bytes.Buffer, sx, sy axis) {
	var list []measured
	for _, m := range c.all {
		beaten := slices.ContainsFunc(c.all, func(o measured) bool {
			return o.threads == 1 && o != m && o.speed >= m.speed && o.ratio >= m.ratio
		})
		if m.threads == 1 && !beaten {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b measured) int { return cmp.Compare(a.speed, b.speed) })
	path := ""
	for i, m := range list {
		if i == 0 {
			path = fmt.Sprintf("M%.1f %.1f", sx.from, sy.at(m.ratio))
		} else {
			path += fmt.Sprintf("V%.1f", sy.at(m.ratio))
		}
		path += fmt.Sprintf("H%.1f", sx.at(m.speed))
	}
	if path != "" {
		fmt.Fprintf(b, `<path d="%sV%.1f" fill="none" stroke="#d9480f" stroke-opacity=".35" stroke-width="2"/>`+"\n", path, sy.from)
	}
}
