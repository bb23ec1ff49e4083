package main

import "math"

// The signed distances of Inigo Quilez's catalogue that the scenes use; all lengths in metres, roughly.

func sphere(p, c vec, r float64) float64 { return p.sub(c).len() - r }

// roundCyl is a vertical cylinder of radius r between y0 and y1 with edges rounded by e.
func roundCyl(p vec, cx, cz, r, y0, y1, e float64) float64 {
	dx := math.Hypot(p.x-cx, p.z-cz) - r + e
	dy := math.Abs(p.y-(y0+y1)/2) - (y1-y0)/2 + e
	return math.Min(math.Max(dx, dy), 0) + math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) - e
}

func roundBox(p, c, half vec, e float64) float64 {
	x, y, z := math.Abs(p.x-c.x)-half.x+e, math.Abs(p.y-c.y)-half.y+e, math.Abs(p.z-c.z)-half.z+e
	out := vec{math.Max(x, 0), math.Max(y, 0), math.Max(z, 0)}.len()
	return out + math.Min(math.Max(x, math.Max(y, z)), 0) - e
}

// capsule is a bar from a to b whose radius goes from ra to rb.
func capsule(p, a, b vec, ra, rb float64) float64 {
	pa, ba := p.sub(a), b.sub(a)
	h := math.Max(0, math.Min(1, pa.dot(ba)/ba.dot(ba)))
	return pa.sub(ba.by(h)).len() - (ra + (rb-ra)*h)
}

// ring is a torus around the z axis.
func ring(p, c vec, r, thick float64) float64 {
	q := p.sub(c)
	return math.Hypot(math.Hypot(q.x, q.y)-r, q.z) - thick
}

func ellipsoid(p, c, r vec) float64 {
	q := p.sub(c)
	k0 := vec{q.x / r.x, q.y / r.y, q.z / r.z}.len()
	k1 := vec{q.x / (r.x * r.x), q.y / (r.y * r.y), q.z / (r.z * r.z)}.len()
	if k1 == 0 {
		return -math.Min(r.x, math.Min(r.y, r.z))
	}
	return k0 * (k0 - 1) / k1
}

func smoothMin(a, b, k float64) float64 {
	h := math.Max(k-math.Abs(a-b), 0) / k
	return math.Min(a, b) - h*h*k/4
}

// pt is a point of a profile: radius and height.
type pt struct{ r, y float64 }

// spline rounds a profile by Catmull–Rom interpolation.
func spline(ps ...pt) []pt {
	var out []pt
	at := func(i int) pt { return ps[max(0, min(len(ps)-1, i))] }
	const steps = 5
	for i := 0; i < len(ps)-1; i++ {
		a, b, c, d := at(i-1), at(i), at(i+1), at(i+2)
		for k := range steps {
			t := float64(k) / steps
			f := func(a, b, c, d float64) float64 {
				return 0.5 * (2*b + (c-a)*t + (2*a-5*b+4*c-d)*t*t + (3*b-a-3*c+d)*t*t*t)
			}
			out = append(out, pt{math.Max(0, f(a.r, b.r, c.r, d.r)), f(a.y, b.y, c.y, d.y)})
		}
	}
	return append(out, ps[len(ps)-1])
}

// vessel turns a profile around the vertical axis through (cx, cz): a wall of the given half thickness.
func vessel(profile []pt, cx, cz, wall float64) func(vec) float64 {
	return func(p vec) float64 {
		r, best := math.Hypot(p.x-cx, p.z-cz), math.Inf(1)
		for i := 1; i < len(profile); i++ {
			a, b := profile[i-1], profile[i]
			ex, ey, wx, wy := b.r-a.r, b.y-a.y, r-a.r, p.y-a.y
			h := math.Max(0, math.Min(1, (wx*ex+wy*ey)/(ex*ex+ey*ey+1e-12)))
			dx, dy := wx-ex*h, wy-ey*h
			best = math.Min(best, dx*dx+dy*dy)
		}
		return math.Sqrt(best) - wall
	}
}

// hash gives a repeatable number in [0, 1) for a lattice point.
func hash(x, y, z int) float64 {
	h := uint32(x)*0x8da6b343 ^ uint32(y)*0xd8163841 ^ uint32(z)*0xcb1ab31f
	h ^= h >> 13
	h *= 0x5bd1e995
	h ^= h >> 15
	return float64(h) / (1 << 32)
}

// noise is smooth value noise in [0, 1).
func noise(p vec) float64 {
	fx, fy, fz := math.Floor(p.x), math.Floor(p.y), math.Floor(p.z)
	x, y, z := int(fx), int(fy), int(fz)
	s := func(t float64) float64 { return t * t * (3 - 2*t) }
	u, v, w := s(p.x-fx), s(p.y-fy), s(p.z-fz)
	l := func(a, b, t float64) float64 { return a + (b-a)*t }
	return l(l(l(hash(x, y, z), hash(x+1, y, z), u), l(hash(x, y+1, z), hash(x+1, y+1, z), u), v),
		l(l(hash(x, y, z+1), hash(x+1, y, z+1), u), l(hash(x, y+1, z+1), hash(x+1, y+1, z+1), u), v), w)
}

// plain is one material everywhere.
func plain(m material) func(vec) material { return func(vec) material { return m } }

func glazed(c uint32) func(vec) material {
	return plain(material{color: hex(c), gloss: 0.045, rough: 0.05})
}

func matte(c uint32) func(vec) material {
	return plain(material{color: hex(c), gloss: 0.02, rough: 0.5})
}

func brass() func(vec) material {
	return plain(material{color: hex(0xD9A95B), gloss: 1, rough: 0.12, metal: true})
}

func steel() func(vec) material {
	return plain(material{color: hex(0xC9CBCE), gloss: 1, rough: 0.18, metal: true})
}

// stoneware is a glaze with dark specks.
func stoneware(c, speck uint32) func(vec) material {
	base, dark := hex(c), hex(speck)
	return func(p vec) material {
		m := material{color: base.by(0.94 + 0.12*noise(p.by(9))), gloss: 0.04, rough: 0.12}
		q := p.by(70)
		if hash(int(math.Floor(q.x)), int(math.Floor(q.y)), int(math.Floor(q.z))) > 0.955 {
			m.color = m.color.mix(dark, 0.75)
		}
		return m
	}
}

// wood has growth rings along x and fine fibres.
func wood(light, dark uint32, along vec) func(vec) material {
	a, b := hex(light), hex(dark)
	return func(p vec) material {
		q := p.sub(along.by(p.dot(along) * 0.93))
		g := math.Sin(q.len()*85 + 7*noise(q.by(6)))
		fibre := noise(vec{q.x * 160, q.y * 160, q.z * 160})
		return material{color: a.mix(b, math.Max(0, math.Min(1, 0.3+0.22*g+0.3*(fibre-0.5)))), gloss: 0.03, rough: 0.3}
	}
}

// cloth is woven, with threads across each other.
func cloth(c uint32, scale float64) func(vec) material {
	base := hex(c)
	return func(p vec) material {
		w := math.Sin(p.x*scale) * math.Sin((p.y+p.z*0.4)*scale)
		return material{color: base.by(0.9 + 0.13*w + 0.14*(noise(p.by(scale/5))-0.5))}
	}
}
