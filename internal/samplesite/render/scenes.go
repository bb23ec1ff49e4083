package main

import "math"

// product makes a studio shot: a floor that runs into the background.
func product(backdrop uint32, height, radius float64, parts ...part) scene {
	at := vec{0, height * 0.47, 0}
	dist := math.Max(height*0.62, radius) * 4.6
	return scene{
		parts: parts, floor: material{color: hex(backdrop)},
		light: vec{-0.62, 0.95, 0.55}, key: vec{1.05, 1.0, 0.93}.by(0.62), spread: 0.16,
		eye: at.add(vec{0.22, 0.36, 1}.unit().by(dist)), at: at, zoom: 1.62, vignette: 0.3,
	}
}

// box wraps a distance function with its bounds.
func box(lo, hi vec, sdf func(vec) float64, mat func(vec) material) part {
	return part{lo, hi, sdf, mat}
}

// around the axis: bounds of a thing of radius r and height h at (x, z).
func pillar(x, z, r, y0, y1 float64, sdf func(vec) float64, mat func(vec) material) part {
	return box(vec{x - r, y0, z - r}, vec{x + r, y1, z + r}, sdf, mat)
}

func vase(x, z, k float64, mat func(vec) material) part {
	prof := spline(pt{0.02, 0.02}, pt{0.2, 0.02}, pt{0.33, 0.2}, pt{0.38, 0.45}, pt{0.27, 0.72}, pt{0.115, 0.9}, pt{0.1, 1.02}, pt{0.16, 1.12})
	return scaled(prof, x, z, k, 0.018, 0.42, 1.15, mat)
}

func bottle(x, z, k float64, mat func(vec) material) part {
	prof := spline(pt{0.02, 0.02}, pt{0.24, 0.02}, pt{0.3, 0.1}, pt{0.3, 0.42}, pt{0.22, 0.6}, pt{0.075, 0.72}, pt{0.065, 0.95}, pt{0.085, 1.0})
	return scaled(prof, x, z, k, 0.016, 0.33, 1.03, mat)
}

func bowl(x, z, k float64, mat func(vec) material) part {
	prof := spline(pt{0.02, 0.05}, pt{0.17, 0.03}, pt{0.34, 0.1}, pt{0.5, 0.26}, pt{0.58, 0.44})
	return scaled(prof, x, z, k, 0.02, 0.61, 0.47, mat)
}

func cup(x, z, k float64, mat func(vec) material) part {
	prof := spline(pt{0.02, 0.025}, pt{0.2, 0.025}, pt{0.265, 0.09}, pt{0.285, 0.3}, pt{0.285, 0.52})
	return scaled(prof, x, z, k, 0.018, 0.32, 0.55, mat)
}

func scaled(prof []pt, x, z, k, wall, r, h float64, mat func(vec) material) part {
	ps := make([]pt, len(prof))
	for i, p := range prof {
		ps[i] = pt{p.r * k, p.y * k}
	}
	return pillar(x, z, r*k, 0, h*k, vessel(ps, x, z, wall*k), mat)
}

// mug is a cup with a handle.
func mug(x, z, k float64, mat func(vec) material) []part {
	handle := func(p vec) float64 {
		q := p.sub(vec{x, 0, z})
		return math.Max(ring(q, vec{0.29 * k, 0.3 * k, 0}, 0.15*k, 0.034*k), (0.275*k)-q.x)
	}
	return []part{cup(x, z, k, mat), box(vec{x + 0.25*k, 0.08 * k, z - 0.06*k}, vec{x + 0.5*k, 0.52 * k, z + 0.06*k}, handle, mat)}
}

// lamp is a dome shade on a stem.
func lamp(x, z, k float64, shade, base func(vec) material) []part {
	dome := spline(pt{0.05, 1.2}, pt{0.22, 1.16}, pt{0.36, 1.02}, pt{0.42, 0.82}, pt{0.43, 0.74})
	for i := range dome {
		dome[i] = pt{dome[i].r * k, dome[i].y * k}
	}
	return []part{
		pillar(x, z, 0.46*k, 0.7*k, 1.24*k, vessel(dome, x, z, 0.014*k), shade),
		pillar(x, z, 0.09*k, 0.7*k, 0.98*k, func(p vec) float64 { return sphere(p, vec{x, 0.84 * k, z}, 0.085*k) },
			plain(material{color: vec{1, 0.9, 0.7}, glow: vec{1, 0.82, 0.55}.by(1.6)})),
		pillar(x, z, 0.27*k, 0, 1.26*k, func(p vec) float64 {
			return smoothMin(roundCyl(p, x, z, 0.25*k, 0, 0.06*k, 0.02*k), roundCyl(p, x, z, 0.026*k, 0.02*k, 1.23*k, 0.01*k), 0.03*k)
		}, base),
	}
}

// stool has a round seat and four splayed legs.
func stool(x, z, k float64, mat func(vec) material) []part {
	legs := func(p vec) float64 {
		best := math.Inf(1)
		for i := range 4 {
			a := math.Pi/4 + float64(i)*math.Pi/2 + 0.2
			c, s := math.Cos(a), math.Sin(a)
			best = math.Min(best, capsule(p, vec{x + 0.42*k*c, 0.03 * k, z + 0.42*k*s}, vec{x + 0.24*k*c, 0.9 * k, z + 0.24*k*s}, 0.03*k, 0.045*k))
		}
		rail := math.Hypot(math.Hypot(p.x-x, p.z-z)-0.36*k, p.y-0.32*k) - 0.018*k
		return math.Min(best, rail)
	}
	seat := func(p vec) float64 {
		d := roundCyl(p, x, z, 0.44*k, 0.88*k, 1.0*k, 0.045*k)
		return -smoothMin(-d, sphere(p, vec{x, 2.35 * k, z}, 1.38*k), 0.04*k)
	}
	return []part{pillar(x, z, 0.5*k, 0, 0.98*k, legs, mat), pillar(x, z, 0.47*k, 0.85*k, 1.02*k, seat, mat)}
}

// sideTable is a disc on a fluted column.
func sideTable(x, z, k float64, mat func(vec) material) []part {
	column := func(p vec) float64 {
		a := math.Atan2(p.z-z, p.x-x)
		return 0.8 * roundCyl(p, x, z, (0.3+0.012*math.Cos(a*22))*k, 0, 0.86*k, 0.03*k)
	}
	return []part{
		pillar(x, z, 0.33*k, 0, 0.88*k, column, mat),
		pillar(x, z, 0.56*k, 0.85*k, 0.96*k, func(p vec) float64 { return roundCyl(p, x, z, 0.55*k, 0.86*k, 0.95*k, 0.03*k) }, mat),
	}
}

// clock faces the camera.
func clock(face, rim func(vec) material) []part {
	c := vec{0, 0.56, 0}
	disc := func(r, z0, z1 float64) func(vec) float64 {
		return func(p vec) float64 {
			q := p.sub(c)
			return math.Max(math.Hypot(q.x, q.y)-r, math.Max(z0-q.z, q.z-z1))
		}
	}
	hand := func(angle, length, w float64) func(vec) float64 {
		tip := c.add(vec{math.Sin(angle) * length, math.Cos(angle) * length, 0.085})
		tail := c.add(vec{-math.Sin(angle) * 0.07, -math.Cos(angle) * 0.07, 0.085})
		return func(p vec) float64 { return capsule(p, tail, tip, w, w*0.7) }
	}
	marks := func(p vec) float64 {
		best := math.Inf(1)
		for i := range 12 {
			a := float64(i) * math.Pi / 6
			in := 0.41
			if i%3 == 0 {
				in = 0.37
			}
			d := vec{math.Sin(a), math.Cos(a), 0}
			best = math.Min(best, capsule(p, c.add(d.by(in)).add(vec{0, 0, 0.068}), c.add(d.by(0.45)).add(vec{0, 0, 0.068}), 0.008, 0.008))
		}
		return best
	}
	lo, hi := vec{-0.6, 0, -0.1}, vec{0.6, 1.15, 0.15}
	ink := matte(0x2A2A2C)
	return []part{
		box(lo, hi, disc(0.53, -0.06, 0.065), face),
		box(lo, hi, func(p vec) float64 { return ring(p, c.add(vec{0, 0, 0.02}), 0.53, 0.034) }, rim),
		box(lo, hi, marks, ink),
		box(lo, hi, func(p vec) float64 {
			return math.Min(hand(-0.98, 0.26, 0.016)(p), hand(1.05, 0.38, 0.012)(p))
		}, ink),
		box(lo, hi, func(p vec) float64 { return sphere(p, c.add(vec{0, 0, 0.09}), 0.028) }, rim),
	}
}

// speaker is a cloth box with two drivers.
func speaker(body, front func(vec) material) []part {
	cut := func(p vec) float64 {
		return roundBox(p, vec{0, 0.62, 0}, vec{0.38, 0.6, 0.3}, 0.07)
	}
	driver := func(y, r float64) func(vec) float64 {
		return func(p vec) float64 {
			q := p.sub(vec{0, y, 0.3})
			rr := math.Hypot(q.x, q.y)
			cone := math.Max(math.Abs(q.z-0.06*(rr/r)+0.02)-0.012, rr-r)
			return math.Min(cone*0.8, math.Min(ring(p, vec{0, y, 0.305}, r, 0.02), sphere(p, vec{0, y, 0.25}, r*0.36)))
		}
	}
	lo, hi := vec{-0.42, 0, -0.35}, vec{0.42, 1.26, 0.4}
	return []part{
		box(lo, hi, cut, body),
		box(lo, hi, func(p vec) float64 { return math.Min(driver(0.4, 0.23)(p), driver(0.9, 0.13)(p)) }, front),
	}
}

// teapot has a spout, a lid and a bow handle.
func teapot(body, trim func(vec) material) []part {
	shell := func(p vec) float64 {
		b := ellipsoid(p, vec{0, 0.36, 0}, vec{0.44, 0.35, 0.44})
		b = smoothMin(b, capsule(p, vec{-0.32, 0.3, 0}, vec{-0.68, 0.62, 0}, 0.105, 0.045), 0.1)
		b = smoothMin(b, roundCyl(p, 0, 0, 0.25, 0.0, 0.08, 0.02), 0.05)
		return smoothMin(b, roundCyl(p, 0, 0, 0.2, 0.66, 0.73, 0.02), 0.03) * 0.9
	}
	grip := func(p vec) float64 {
		q := p.sub(vec{0, 0.56, 0})
		arc := math.Max(math.Hypot(math.Hypot(q.x, q.y*0.92)-0.42, q.z)-0.026, -q.y)
		return math.Min(arc*0.9, sphere(p, vec{0, 0.77, 0}, 0.055))
	}
	return []part{
		box(vec{-0.78, 0, -0.46}, vec{0.46, 0.75, 0.46}, shell, body),
		box(vec{-0.48, 0.54, -0.08}, vec{0.48, 1.08, 0.08}, grip, trim),
	}
}

// cushion is a pillow that stands on an edge.
func cushion(mat func(vec) material) []part {
	f := func(p vec) float64 {
		q := vec{p.x, (p.y - 0.52) * 0.985, p.z - 0.16*(p.y-0.5)}
		edge := func(v float64) float64 { return math.Max(0, 1-v*v/0.29) } // sides sag between the corners
		m := math.Max(0, 1-math.Pow(math.Abs(q.x)/0.56, 2.2)) * math.Max(0, 1-math.Pow(math.Abs(q.y)/0.54, 2.2))
		return 0.5 * roundBox(q, vec{}, vec{0.55 - 0.06*edge(q.y), 0.53 - 0.06*edge(q.x), 0.03 + 0.25*math.Sqrt(m)}, 0.03)
	}
	return []part{box(vec{-0.6, 0, -0.36}, vec{0.6, 1.06, 0.4}, f, mat)}
}

// plant is a pot with broad leaves.
func plant(x, z, k float64, pot func(vec) material) []part {
	prof := spline(pt{0.02, 0.02}, pt{0.24, 0.02}, pt{0.3, 0.1}, pt{0.34, 0.42})
	for i := range prof {
		prof[i] = pt{prof[i].r * k, prof[i].y * k}
	}
	type leaf struct{ c, u, v, n vec }
	var leaves []leaf
	var stems [][2]vec
	for i := range 13 {
		a := float64(i) * 2.39996
		lean := 0.25 + 0.75*hash(i, 3, 1)
		tip := vec{x + k*0.5*lean*math.Cos(a), k * (1.28 - 0.55*lean + 0.1*hash(i, 7, 2)), z + k*0.5*lean*math.Sin(a)}
		stems = append(stems, [2]vec{{x, 0.36 * k, z}, tip})
		u := vec{math.Cos(a) * (0.35 + lean), 0.75 - lean, math.Sin(a) * (0.35 + lean)}.unit()
		n := u.cross(vec{-math.Sin(a), 0, math.Cos(a)}).unit()
		leaves = append(leaves, leaf{tip.add(u.by(0.1 * k)), u, n.cross(u), n})
	}
	foliage := func(p vec) float64 {
		best := math.Inf(1)
		for _, l := range leaves {
			q := p.sub(l.c)
			if best < math.Inf(1) && q.len()-0.3*k > best {
				continue
			}
			a, b, c := q.dot(l.u), q.dot(l.v), q.dot(l.n)
			best = math.Min(best, 0.6*ellipsoid(vec{a, b, c + 0.9*a*a/k - 0.25*math.Abs(b)}, vec{}, vec{0.24 * k, 0.125 * k, 0.012 * k}))
		}
		for _, s := range stems {
			best = math.Min(best, capsule(p, s[0], s[1], 0.014*k, 0.009*k))
		}
		return best
	}
	green := func(p vec) material {
		return material{color: hex(0x2F6B3C).mix(hex(0x6E9B4E), noise(p.by(7/k))), gloss: 0.04, rough: 0.3}
	}
	soil := func(p vec) float64 { return roundCyl(p, x, z, 0.31*k, 0.3*k, 0.36*k, 0.01*k) }
	return []part{
		pillar(x, z, 0.37*k, 0, 0.45*k, vessel(prof, x, z, 0.018*k), pot),
		pillar(x, z, 0.33*k, 0.29*k, 0.37*k, soil, matte(0x3B2A20)),
		pillar(x, z, 0.92*k, 0.34*k, 1.55*k, foliage, green),
	}
}

// candles are three brass holders of different heights.
func candles(holder, wax func(vec) material) []part {
	var out []part
	for i, h := range []float64{0.62, 0.4, 0.24} {
		x, z := []float64{-0.3, 0.06, 0.36}[i], []float64{-0.1, 0.1, -0.05}[i]
		out = append(out,
			pillar(x, z, 0.17, 0, h+0.06, func(p vec) float64 {
				d := smoothMin(roundCyl(p, x, z, 0.16, 0, 0.035, 0.015), roundCyl(p, x, z, 0.025, 0.02, h, 0.01), 0.06)
				return smoothMin(d, roundCyl(p, x, z, 0.07, h-0.02, h+0.05, 0.015), 0.04)
			}, holder),
			pillar(x, z, 0.05, h, h+0.48, func(p vec) float64 { return roundCyl(p, x, z, 0.036, h, h+0.45, 0.015) }, wax))
	}
	return out
}

// books lie in a stack.
func books(x, y, z, k float64, colours ...uint32) []part {
	var out []part
	for i, c := range colours {
		h := k * 0.075
		y0, turn, w := y+float64(i)*h, 0.25*(hash(i, 9, 4)-0.5), k*(0.42-0.03*float64(i))
		co, si := math.Cos(turn), math.Sin(turn)
		f := func(p vec) float64 {
			q := vec{(p.x-x)*co - (p.z-z)*si, p.y - y0 - h/2, (p.x-x)*si + (p.z-z)*co}
			return roundBox(q, vec{}, vec{w, h * 0.48, w * 0.72}, 0.008*k)
		}
		cover, paper := hex(c), hex(0xF1EADC)
		m := func(p vec) material {
			q := vec{(p.x-x)*co - (p.z-z)*si, p.y - y0 - h/2, (p.x-x)*si + (p.z-z)*co}
			if math.Abs(q.y) < h*0.33 && q.x > -w*0.9 && (q.z > w*0.69 || q.x > w*0.97) {
				return material{color: paper.by(0.9 + 0.1*math.Sin(q.y*900))}
			}
			return material{color: cover, gloss: 0.03, rough: 0.3}
		}
		out = append(out, box(vec{x - w*1.2, y0, z - w}, vec{x + w*1.2, y0 + h, z + w}, f, m))
	}
	return out
}

// mirror is a round glass in a wooden ring.
func mirror(rim func(vec) material) []part {
	c := vec{0, 0.6, 0}
	glass := func(p vec) float64 {
		q := p.sub(c)
		return math.Max(math.Hypot(q.x, q.y)-0.52, math.Abs(q.z)-0.02)
	}
	lo, hi := vec{-0.62, 0, -0.1}, vec{0.62, 1.2, 0.1}
	foot := func(p vec) float64 { return roundBox(p, vec{0, 0.03, 0}, vec{0.3, 0.035, 0.14}, 0.02) }
	return []part{
		box(lo, hi, glass, plain(material{color: hex(0xE8EEF0), gloss: 1, metal: true})),
		box(lo, hi, func(p vec) float64 { return ring(p, c, 0.54, 0.038) }, rim),
		box(vec{-0.32, 0, -0.16}, vec{0.32, 0.08, 0.16}, foot, rim),
	}
}

func raise(y float64, ps []part) []part {
	for i, p := range ps {
		sdf, mat := p.sdf, p.mat
		down := func(q vec) vec { return vec{q.x, q.y - y, q.z} }
		ps[i] = part{p.lo.add(vec{0, y, 0}), p.hi.add(vec{0, y, 0}),
			func(q vec) float64 { return sdf(down(q)) }, func(q vec) material { return mat(down(q)) }}
	}
	return ps
}

func join(groups ...[]part) []part {
	var out []part
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

func one(p part) []part { return []part{p} }
