package measure

import (
	"cmp"
	"fmt"
	"image"
	"slices"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// mostColours are told.
const mostColours = 8

// keyColours counts the colours of the final picture, of five bits a channel, and tells for each
// of the commonest the mean of the pixels that have it. A colour next to a commoner one in
// each channel, as smoothed edges have it, is counted with that one.
func (m *run) keyColours() error {
	pix, err := m.frames.Pixels(m.o.End - 1)
	if err != nil {
		return err
	}
	p, err := visual.PictureOf(m.frames.Format(), pix, m.o.Content)
	if err != nil {
		return err
	}
	parts := visual.Without(m.o.Content, m.o.Ignore)
	bins, all := colourBins(p, parts)
	if all == 0 {
		return nil
	}
	kept := mergeBins(bins)
	for _, b := range kept[:min(len(kept), mostColours)] {
		m.r.Colours = append(m.r.Colours, lab.ColourShare{
			Colour:  fmt.Sprintf("#%02x%02x%02x", b.sum[0]/b.n, b.sum[1]/b.n, b.sum[2]/b.n),
			Percent: 100 * float64(b.n) / float64(all),
		})
	}
	share := 0.0
	for _, c := range m.r.Colours {
		share += c.Percent
	}
	last := []int{m.o.End - 1}
	m.add("", metric.KeyColour.Measure(m.r.Colours[0].Percent, last, "it is "+m.r.Colours[0].Colour),
		metric.KeyColours.Measure(share, last, fmt.Sprintf("there are %d", len(m.r.Colours))))
	return nil
}

// bin is a colour of five bits a channel.
type bin struct {
	r, g, b int
	n       int
	sum     [3]int
}

func colourBins(p *visual.Picture, parts []image.Rectangle) (out []bin, all int) {
	bins := make([]bin, 1<<15)
	for _, part := range parts {
		for y := part.Min.Y; y < part.Max.Y; y++ {
			for _, v := range p.Row(y, part.Min.X, part.Max.X) {
				r, g, b := int(v>>16&255), int(v>>8&255), int(v&255)
				one := &bins[r>>3<<10|g>>3<<5|b>>3]
				one.n++
				one.sum[0], one.sum[1], one.sum[2] = one.sum[0]+r, one.sum[1]+g, one.sum[2]+b
				all++
			}
		}
	}
	for i, b := range bins {
		if b.n > 0 {
			b.r, b.g, b.b = i>>10, i>>5&31, i&31
			out = append(out, b)
		}
	}
	return out, all
}

// mergeBins counts each colour with a commoner neighbour, the commonest first.
func mergeBins(bins []bin) (kept []bin) {
	slices.SortStableFunc(bins, func(a, b bin) int { return cmp.Compare(b.n, a.n) })
	near := func(a, b int) bool { return a-b <= 1 && b-a <= 1 }
	for _, b := range bins {
		const most = 64 // beyond, a colour is too rare to be told
		i := slices.IndexFunc(kept, func(k bin) bool { return near(k.r, b.r) && near(k.g, b.g) && near(k.b, b.b) })
		switch {
		case i >= 0:
			kept[i].n += b.n
			for c := range b.sum {
				kept[i].sum[c] += b.sum[c]
			}
		case len(kept) < most:
			kept = append(kept, b)
		}
	}
	slices.SortStableFunc(kept, func(a, b bin) int { return cmp.Compare(b.n, a.n) })
	return kept
}
