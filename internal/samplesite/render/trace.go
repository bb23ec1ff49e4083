package main

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

// vec is a point, a direction or a linear RGB colour.
type vec struct{ x, y, z float64 }

func (a vec) add(b vec) vec            { return vec{a.x + b.x, a.y + b.y, a.z + b.z} }
func (a vec) sub(b vec) vec            { return vec{a.x - b.x, a.y - b.y, a.z - b.z} }
func (a vec) mul(b vec) vec            { return vec{a.x * b.x, a.y * b.y, a.z * b.z} }
func (a vec) by(k float64) vec         { return vec{a.x * k, a.y * k, a.z * k} }
func (a vec) dot(b vec) float64        { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec) len() float64             { return math.Sqrt(a.dot(a)) }
func (a vec) unit() vec                { return a.by(1 / a.len()) }
func (a vec) mix(b vec, k float64) vec { return a.by(1 - k).add(b.by(k)) }
func (a vec) cross(b vec) vec {
	return vec{a.y*b.z - a.z*b.y, a.z*b.x - a.x*b.z, a.x*b.y - a.y*b.x}
}

// hex turns an sRGB colour such as 0xC65D3B into linear light.
func hex(c uint32) vec {
	lin := func(b uint32) float64 { return math.Pow(float64(b&255)/255, 2.2) }
	return vec{lin(c >> 16), lin(c >> 8), lin(c)}
}

// material is how a surface answers light.
type material struct {
	color vec
	gloss float64 // reflectance at normal incidence; 0.04 is glazed, 0 is chalk
	rough float64 // spread of reflections
	metal bool
	glow  vec
}

// part is a piece of one material: a signed distance inside a bounding box.
type part struct {
	lo, hi vec
	sdf    func(vec) float64
	mat    func(vec) material
}

// scene is what one picture shows.
type scene struct {
	parts    []part
	floor    material
	wall     *material // at z = wallZ when set
	wallZ    float64
	floorMat func(vec) material // overrides floor when set
	light    vec                // towards the key light
	key      vec                // its colour and strength
	spread   float64            // its angular size
	gobo     func(vec) float64  // what a window lets through, by the point where the light crosses z = 0 … or nil
	eye, at  vec
	zoom     float64
	vignette float64
	far      vec // what an unshadowed floor looks like at infinity
}

// env is the studio: a bright ceiling, a softbox at the left, a darker floor side.
func env(d vec) vec {
	up := 0.5 + 0.5*d.y
	c := vec{0.62, 0.61, 0.60}.mix(vec{1.0, 0.99, 0.97}, up)
	box := math.Max(0, d.dot(vec{-0.72, 0.55, 0.42}))
	return c.add(vec{1, 0.97, 0.92}.by(2.2 * math.Pow(box, 24)))
}

const farAway = 1e9

// slab returns where a ray enters and leaves the part's box.
func (p *part) slab(o, inv vec) (float64, float64) {
	x0, x1 := (p.lo.x-o.x)*inv.x, (p.hi.x-o.x)*inv.x
	y0, y1 := (p.lo.y-o.y)*inv.y, (p.hi.y-o.y)*inv.y
	z0, z1 := (p.lo.z-o.z)*inv.z, (p.hi.z-o.z)*inv.z
	in := math.Max(math.Max(math.Min(x0, x1), math.Min(y0, y1)), math.Min(z0, z1))
	out := math.Min(math.Min(math.Max(x0, x1), math.Max(y0, y1)), math.Max(z0, z1))
	return math.Max(in, 0), out
}

// hit finds the nearest surface along a ray; kind −1 nothing, −2 floor, −3 wall, else a part.
func (s *scene) hit(o, d vec, limit float64, any bool) (float64, int) {
	best, kind := limit, -1
	if d.y < -1e-6 {
		if t := -o.y / d.y; t > 1e-4 && t < best {
			best, kind = t, -2
		}
	}
	if s.wall != nil && d.z < -1e-6 {
		if t := (s.wallZ - o.z) / d.z; t > 1e-4 && t < best {
			best, kind = t, -3
		}
	}
	inv := vec{1 / d.x, 1 / d.y, 1 / d.z}
	for i := range s.parts {
		p := &s.parts[i]
		in, out := p.slab(o, inv)
		if out <= in || in >= best {
			continue
		}
		t := in
		for n := 0; n < 140 && t < out && t < best; n++ {
			dist := p.sdf(o.add(d.by(t)))
			if dist < 0.0006 {
				best, kind = t, i
				break
			}
			t += dist * 0.9
		}
		if any && kind == i {
			return best, kind
		}
	}
	return best, kind
}

func (s *scene) normal(i int, p vec) vec {
	f, e := s.parts[i].sdf, 0.0008
	return vec{
		f(vec{p.x + e, p.y, p.z}) - f(vec{p.x - e, p.y, p.z}),
		f(vec{p.x, p.y + e, p.z}) - f(vec{p.x, p.y - e, p.z}),
		f(vec{p.x, p.y, p.z + e}) - f(vec{p.x, p.y, p.z - e}),
	}.unit()
}

// around turns a local direction (z along n) into the world.
func around(n, v vec) vec {
	a := vec{1, 0, 0}
	if math.Abs(n.x) > 0.8 {
		a = vec{0, 1, 0}
	}
	t := n.cross(a).unit()
	return t.by(v.x).add(n.cross(t).by(v.y)).add(n.by(v.z))
}

// sampler gives stratified numbers: the R2 sequence, shifted for each pixel.
type sampler struct {
	shift [6]float64
	n     int
}

func (q *sampler) pair(dim int) (float64, float64) {
	u := q.shift[2*dim] + float64(q.n)*0.7548776662466927
	v := q.shift[2*dim+1] + float64(q.n)*0.5698402909980532
	return u - math.Floor(u), v - math.Floor(v)
}

// radiance follows one camera or mirror ray.
func (s *scene) radiance(o, d vec, q *sampler, depth int) vec {
	t, kind := s.hit(o, d, farAway, false)
	if kind == -1 {
		if depth == 0 {
			return s.far
		}
		return env(d)
	}
	p := o.add(d.by(t))
	var n vec
	var m material
	switch kind {
	case -2:
		n, m = vec{0, 1, 0}, s.floor
		if s.floorMat != nil {
			m = s.floorMat(p)
		}
		if depth == 0 && t > 30 {
			return s.far
		}
	case -3:
		n, m = vec{0, 0, 1}, *s.wall
	default:
		n, m = s.normal(kind, p), s.parts[kind].mat(p)
	}
	if n.dot(d) > 0 {
		n = n.by(-1)
	}
	from := p.add(n.by(0.003))
	out := m.glow
	if !m.metal {
		out = out.add(m.color.mul(s.direct(from, n, q).add(s.bounce(from, n, q))))
	}
	if m.gloss > 0 && depth < 2 {
		f := m.gloss + (1-m.gloss)*math.Pow(1-math.Max(0, -n.dot(d)), 5)*(1-m.rough)
		r := d.sub(n.by(2 * n.dot(d)))
		if m.rough > 0 {
			u, v := q.pair(2)
			a, b := 2*math.Pi*u, m.rough*math.Sqrt(v)
			r = r.add(around(r.unit(), vec{b * math.Cos(a), b * math.Sin(a), 0})).unit()
		}
		mirror := s.radiance(from, r, q, depth+1)
		if m.metal {
			return out.add(mirror.mul(m.color))
		}
		out = out.by(1 - f).add(mirror.by(f))
	}
	return out
}

// direct is the key light, with soft shadows.
func (s *scene) direct(p, n vec, q *sampler) vec {
	u, v := q.pair(0)
	a, r := 2*math.Pi*u, s.spread*math.Sqrt(v)
	l := around(s.light, vec{r * math.Cos(a), r * math.Sin(a), 1}).unit()
	c := n.dot(l)
	if c <= 0 {
		return vec{}
	}
	through := 1.0
	if s.gobo != nil {
		// The window stands at x = -2.2.
		through = s.gobo(p.add(l.by((-2.2 - p.x) / l.x)))
	}
	if through == 0 {
		return vec{}
	}
	if _, kind := s.hit(p, l, farAway, true); kind >= 0 {
		return vec{}
	}
	return s.key.by(c * through)
}

// bounce is the studio's light and one reflection off the neighbours.
func (s *scene) bounce(p, n vec, q *sampler) vec {
	u, v := q.pair(1)
	a, r := 2*math.Pi*u, math.Sqrt(v)
	l := around(n, vec{r * math.Cos(a), r * math.Sin(a), math.Sqrt(1 - v)})
	t, kind := s.hit(p, l, 6, false)
	switch {
	case kind == -1:
		return env(l).by(0.62)
	case kind == -2:
		return s.floor.color.by(0.55)
	case kind == -3:
		return s.wall.color.by(0.55)
	}
	m := s.parts[kind].mat(p.add(l.by(t)))
	return m.color.by(0.32).add(m.glow)
}

// render draws the scene with spp rays a pixel.
func (s *scene) render(w, h, spp int, seed uint64) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	s.light = s.light.unit()
	fwd := s.at.sub(s.eye).unit()
	right := fwd.cross(vec{0, 1, 0}).unit()
	up := right.cross(fwd)
	open := &sampler{}
	for open.n = 0; open.n < 4096; open.n++ {
		s.far = s.far.add(s.bounceOpen(open).by(1.0 / 4096))
	}
	s.far = s.floor.color.mul(s.far.add(s.key.by(s.light.y)))
	var wg sync.WaitGroup
	rows := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for y := range rows {
				rng := rand.New(rand.NewPCG(seed, uint64(y)))
				for x := range w {
					q := &sampler{}
					for i := range q.shift {
						q.shift[i] = rng.Float64()
					}
					var sum vec
					for q.n = 0; q.n < spp; q.n++ {
						jx, jy := rng.Float64(), rng.Float64()
						px := (float64(x) + jx - float64(w)/2) / float64(h)
						py := (float64(h)/2 - float64(y) - jy) / float64(h)
						d := fwd.by(s.zoom).add(right.by(px)).add(up.by(py)).unit()
						c := s.radiance(s.eye, d, q, 0)
						sum = sum.add(vec{math.Min(c.x, 4), math.Min(c.y, 4), math.Min(c.z, 4)})
					}
					px, py := float64(x)/float64(w)-0.5, float64(y)/float64(h)-0.5
					img.SetNRGBA(x, y, tone(sum.by((1-s.vignette*(px*px+py*py))/float64(spp))))
				}
			}
		}()
	}
	for y := range h {
		rows <- y
	}
	close(rows)
	wg.Wait()
	return img
}

// bounceOpen is bounce for an upward surface that sees nothing else.
func (s *scene) bounceOpen(q *sampler) vec {
	u, v := q.pair(1)
	a, r := 2*math.Pi*u, math.Sqrt(v)
	return env(vec{r * math.Cos(a), math.Sqrt(1 - v), r * math.Sin(a)}).by(0.62)
}

// tone compresses highlights and encodes to sRGB.
func tone(c vec) color.NRGBA {
	f := func(v float64) uint8 {
		v = math.Max(0, v)
		if v > 0.7 { // a soft shoulder, so that white keeps its shape
			v = 0.7 + 0.3*(1-math.Exp(-(v-0.7)/0.3))
		}
		return uint8(math.Min(255, 255*math.Pow(v, 1/2.2)+0.5))
	}
	return color.NRGBA{f(c.x), f(c.y), f(c.z), 255}
}
