package motion

import (
	"image"
	"math"
	"slices"
)

// pyramid holds a picture and its halves, smallest last.
type pyramid struct {
	levels []plane
}

type plane struct {
	w, h int
	pix  []float32
}

// smallestSide ends the pyramid: below it a picture tells nothing.
const smallestSide = 24

// build halves the picture by the mean of four. The full picture is smoothed a little
// first, so that its gradients suit interpolation.
func (p *pyramid) build(pix []float32, size image.Point) {
	n := 0
	level := func(w, h int) *plane {
		if n == len(p.levels) {
			p.levels = append(p.levels, plane{})
		}
		l := &p.levels[n]
		if l.w != w || l.h != h {
			*l = plane{w, h, make([]float32, w*h)}
		}
		n++
		return l
	}
	smooth(level(size.X, size.Y), pix)
	for {
		w, h := p.levels[n-1].w/2, p.levels[n-1].h/2
		if min(w, h) < smallestSide {
			break
		}
		out := level(w, h)
		from := &p.levels[n-2] // level may have moved them
		for y := range h {
			a, b := from.pix[2*y*from.w:][:from.w], from.pix[(2*y+1)*from.w:][:from.w]
			for x := range w {
				out.pix[y*w+x] = (a[2*x] + a[2*x+1] + b[2*x] + b[2*x+1]) / 4
			}
		}
	}
	p.levels = p.levels[:n]
}

// smooth is the binomial 1 4 6 4 1 over 16 in both directions.
func smooth(out *plane, pix []float32) {
	w, h := out.w, out.h
	pass := make([]float32, w*h)
	at := func(i, n int) int { return min(max(i, 0), n-1) }
	for y := range h {
		row := pix[y*w:][:w]
		dst := pass[y*w:][:w]
		for x := range w {
			if x < 2 || x >= w-2 {
				dst[x] = (row[at(x-2, w)] + 4*row[at(x-1, w)] + 6*row[x] + 4*row[at(x+1, w)] + row[at(x+2, w)]) / 16
				continue
			}
			dst[x] = (row[x-2] + 4*row[x-1] + 6*row[x] + 4*row[x+1] + row[x+2]) / 16
		}
	}
	for y := range h {
		a, b, c := pass[at(y-2, h)*w:][:w], pass[at(y-1, h)*w:][:w], pass[y*w:][:w]
		d, e := pass[at(y+1, h)*w:][:w], pass[at(y+2, h)*w:][:w]
		dst := out.pix[y*w:][:w]
		for x := range w {
			dst[x] = (a[x] + 4*b[x] + 6*c[x] + 4*d[x] + e[x]) / 16
		}
	}
}

// fit is a displacement and a scale about the centre, in pixels of the full picture:
// what stood at c+q in the old picture stands at c+scale·q+(dx,dy) in the new one.
type fit struct {
	dx, dy, scale float64
	share         float64 // of the pixels with detail, those that agree
	cost          float64 // mean absolute difference
}

// align finds the fit of two pictures. The displacement is searched for where the
// pictures are smallest, over half their sides, and followed to the full ones.
func align(old, now *pyramid, zoom bool) fit {
	last := len(now.levels) - 1
	if small := now.levels[last]; min(small.w, small.h) < smallestSide/2 {
		return fit{scale: 1} // too little to compare
	}
	scales := []float64{1}
	if zoom {
		for s := 0.78; s < 1.3; s *= 1.035 {
			scales = append(scales, s)
		}
	}
	var best []fit
	for _, s := range scales {
		reach := 0.5
		if s != 1 {
			reach = 0.2
		}
		best = append(best, search(&old.levels[last], &now.levels[last], s, reach)...)
	}
	best = cheapest(best, 4)
	for l := last; l >= 0; l-- {
		a, b := &old.levels[l], &now.levels[l]
		for i := range best {
			if l < last {
				best[i].dx, best[i].dy = 2*best[i].dx, 2*best[i].dy
			}
			best[i] = nudge(a, b, best[i])
			if l < 2 || zoom {
				best[i] = refine(a, b, best[i], zoom)
			}
		}
		best = cheapest(best, min(max(l, 1), 3))
	}
	if len(best) == 0 {
		return fit{scale: 1}
	}
	f := best[0]
	f.share = f.explains(&old.levels[0], &now.levels[0])
	return f
}

// cheapest keeps the n fits of least cost.
func cheapest(fits []fit, n int) []fit {
	slices.SortStableFunc(fits, func(a, b fit) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	return fits[:min(n, len(fits))]
}

// search tries every whole displacement within reach of the sides, and returns the
// three best that are no neighbours.
func search(old, now *plane, scale, reach float64) []fit {
	rx, ry := int(reach*float64(now.w)), int(reach*float64(now.h))
	warped := old
	if scale != 1 {
		warped = resample(old, scale)
	}
	var all []fit
	for dy := -ry; dy <= ry; dy++ {
		for dx := -rx; dx <= rx; dx++ {
			all = append(all, fit{dx: float64(dx), dy: float64(dy), scale: scale, cost: difference(warped, now, dx, dy, 1)})
		}
	}
	all = cheapest(all, 40)
	var out []fit
	for _, f := range all {
		if !slices.ContainsFunc(out, func(g fit) bool { return math.Abs(f.dx-g.dx) <= 1 && math.Abs(f.dy-g.dy) <= 1 }) {
			out = append(out, f)
		}
		if len(out) == 3 {
			break
		}
	}
	return out
}

// resample scales a picture about its centre; what is beyond its edge is the edge.
func resample(p *plane, scale float64) *plane {
	out := &plane{p.w, p.h, make([]float32, p.w*p.h)}
	cx, cy := float64(p.w)/2-0.5, float64(p.h)/2-0.5
	for y := range p.h {
		for x := range p.w {
			out.pix[y*p.w+x] = float32(p.at(cx+(float64(x)-cx)/scale, cy+(float64(y)-cy)/scale))
		}
	}
	return out
}

// at interpolates between four pixels.
func (p *plane) at(x, y float64) float64 {
	x, y = min(max(x, 0), float64(p.w-1)), min(max(y, 0), float64(p.h-1))
	ix, iy := min(int(x), p.w-2), min(int(y), p.h-2)
	u, v := x-float64(ix), y-float64(iy)
	a := p.pix[iy*p.w+ix:]
	b := p.pix[(iy+1)*p.w+ix:]
	top := float64(a[0]) + u*float64(a[1]-a[0])
	return top + v*(float64(b[0])+u*float64(b[1]-b[0])-top)
}

// difference is the mean absolute difference where both pictures have pixels. Less
// overlap costs a little, or a sliver of equal white would be the best of all.
func difference(old, now *plane, dx, dy, step int) float64 {
	x0, x1 := max(0, dx), min(now.w, now.w+dx)
	y0, y1 := max(0, dy), min(now.h, now.h+dy)
	if x1-x0 < now.w/4 || y1-y0 < now.h/4 {
		return math.Inf(1)
	}
	sum, n := float32(0), 0
	for y := y0; y < y1; y += step {
		a, b := old.pix[(y-dy)*old.w+x0-dx:][:x1-x0], now.pix[y*now.w+x0:][:x1-x0]
		for x := 0; x < len(a); x += step {
			d := a[x] - b[x]
			if d < 0 {
				d = -d
			}
			sum += d
			n++
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	overlap := float64((x1-x0)*(y1-y0)) / float64(now.w*now.h)
	return (float64(sum)/float64(n) + 0.05) / math.Sqrt(overlap)
}

// nudge moves a fit by up to two pixels to where the difference is least.
func nudge(old, now *plane, f fit) fit {
	if f.scale != 1 {
		f.cost = f.residual(old, now)
		return f
	}
	step := max(1, now.w/320)
	x, y := int(math.Round(f.dx)), int(math.Round(f.dy))
	best := fit{dx: f.dx, dy: f.dy, scale: f.scale, cost: math.Inf(1)}
	for ny := y - 2; ny <= y+2; ny++ {
		for nx := x - 2; nx <= x+2; nx++ {
			if c := difference(old, now, nx, ny, step); c < best.cost {
				best = fit{dx: float64(nx), dy: float64(ny), scale: f.scale, cost: c}
			}
		}
	}
	return best
}

// sparse is the distance of the pixels that are looked at: some 10,000 tell enough.
func (p *plane) sparse() int { return max(1, int(math.Sqrt(float64(p.w*p.h)/10000))) }

// points calls visit with some pixels of the old picture and their place in the new one.
func (f fit) points(old, now *plane, visit func(i int, qx, qy, x, y float64)) {
	step := now.sparse()
	cx, cy := float64(now.w)/2-0.5, float64(now.h)/2-0.5
	for py := 1 + step/2; py < old.h-1; py += step {
		for px := 1 + (py/step)%2*(step/2); px < old.w-1; px += step {
			qx, qy := float64(px)-cx, float64(py)-cy
			x, y := cx+f.scale*qx+f.dx, cy+f.scale*qy+f.dy
			if x < 1 || y < 1 || x > float64(now.w-2) || y > float64(now.h-2) {
				continue
			}
			visit(py*old.w+px, qx, qy, x, y)
		}
	}
}

// residual is the mean absolute difference of a fit, as difference has it.
func (f fit) residual(old, now *plane) float64 {
	sum, n := 0.0, 0
	step := now.sparse()
	f.points(old, now, func(i int, _, _, x, y float64) {
		sum += math.Abs(now.at(x, y) - float64(old.pix[i]))
		n++
	})
	if n == 0 {
		return math.Inf(1)
	}
	overlap := min(float64(n*step*step)/float64(now.w*now.h), 1)
	return (sum/float64(n) + 0.05) / math.Sqrt(overlap)
}

// refine takes Gauss–Newton steps. Pixels that disagree by far, as what has newly
// come into view or stands still does, weigh little (Geman and McClure's weight).
func refine(old, now *plane, f fit, zoom bool) fit {
	f.cost = f.residual(old, now)
	for range 10 {
		var a [3][3]float64
		var b [3]float64
		width := max(2*f.cost, 3)
		f.points(old, now, func(i int, qx, qy, x, y float64) {
			gx, gy := float64(old.pix[i+1]-old.pix[i-1])/2, float64(old.pix[i+old.w]-old.pix[i-old.w])/2
			if max(gx, -gx)+max(gy, -gy) < 0.5 {
				return // flat: says nothing of where it went
			}
			e := float64(old.pix[i]) - now.at(x, y)
			w := 1 / (1 + e*e/(width*width))
			w *= w
			gs := float64(gx*qx) + float64(gy*qy)
			wx, wy, ws := w*gx, w*gy, w*gs
			a[0][0] += float64(wx * gx)
			a[0][1] += float64(wx * gy)
			a[0][2] += float64(wx * gs)
			a[1][1] += float64(wy * gy)
			a[1][2] += float64(wy * gs)
			a[2][2] += float64(ws * gs)
			b[0] += float64(wx * e)
			b[1] += float64(wy * e)
			b[2] += float64(ws * e)
		})
		a[1][0], a[2][0], a[2][1] = a[0][1], a[0][2], a[1][2]
		if !zoom {
			a[2] = [3]float64{0, 0, 1}
			a[0][2], a[1][2], b[2] = 0, 0, 0
		}
		step, ok := solve(a, b)
		if !ok || math.Hypot(step[0], step[1]) > 8 || math.Abs(step[2]) > 0.2 {
			break
		}
		next := f
		next.dx, next.dy, next.scale = f.dx+step[0], f.dy+step[1], f.scale+step[2]
		next.cost = next.residual(old, now)
		if next.cost > f.cost*1.02 {
			break
		}
		f = next
		if math.Hypot(step[0], step[1]) < 0.003 && math.Abs(step[2]) < 1e-5 {
			break
		}
	}
	return f
}

// solve is Gauss's elimination of three unknowns; false if they are not determined, as
// across lines that all run one way: those are left where they are.
func solve(a [3][3]float64, b [3]float64) ([3]float64, bool) {
	trace := a[0][0] + a[1][1]
	for i := range 2 {
		a[i][i] += 1e-4*trace + 1e-9
	}
	a[2][2] += 1e-9
	for i := range 3 {
		p := i
		for r := i + 1; r < 3; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[p][i]) {
				p = r
			}
		}
		if math.Abs(a[p][i]) < 1e-12 {
			return b, false
		}
		a[i], a[p], b[i], b[p] = a[p], a[i], b[p], b[i]
		for r := i + 1; r < 3; r++ {
			m := a[r][i] / a[i][i]
			for c := i; c < 3; c++ {
				a[r][c] -= float64(m * a[i][c])
			}
			b[r] -= float64(m * b[i])
		}
	}
	for i := 2; i >= 0; i-- {
		for c := i + 1; c < 3; c++ {
			b[i] -= float64(a[i][c] * b[c])
		}
		b[i] /= a[i][i]
	}
	return b, true
}

// explains is the share of the pixels with detail that the fit brings to what is there.
// It is 0 if the pictures agree without any movement as well: something that was drawn
// on a flat place changes much and moves nothing.
func (f fit) explains(old, now *plane) float64 {
	agree, all, moved, changed, seen := 0, 0, 0, 0, 0
	f.points(old, now, func(i int, _, _, x, y float64) {
		seen++
		gx, gy := math.Abs(float64(old.pix[i+1]-old.pix[i-1])), math.Abs(float64(old.pix[i+old.w]-old.pix[i-old.w]))
		detail := max(gx, gy)
		if detail < 4 {
			return
		}
		all++
		// Half a pixel of error in a slope is what interpolation may cost.
		limit := max(0.25*detail, 6)
		there := math.Abs(now.at(x, y)-float64(old.pix[i])) <= limit
		if there {
			agree++
		}
		if math.Abs(float64(now.pix[i]-old.pix[i])) > limit {
			changed++
			if there {
				moved++
			}
		}
	})
	share := float64(agree) / float64(max(all, 1))
	if 10*changed >= all && 200*changed >= seen && changed >= 8 {
		return min(share, float64(moved)/float64(changed))
	}
	// Hardly a pixel changed by much: only a small movement that fits better than none is one.
	none := fit{scale: 1}
	if math.Hypot(f.dx, f.dy) > 1.5 || math.Abs(f.scale-1)*float64(now.w)/2 > 1.5 || f.cost > 0.9*none.residual(old, now) {
		return 0
	}
	return share
}
