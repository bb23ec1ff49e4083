package main

import "math"

// picture is one file of the shop.
type picture struct {
	name    string
	w, h    int // pixels
	quality int // of JPEG and WebP
	make    func() scene
}

// pictures lists every file that render draws.
func pictures() []picture {
	shot := func(name string, backdrop uint32, height, radius float64, parts ...part) picture {
		return picture{name, 560, 560, 94, func() scene { return product(backdrop, height, radius, parts...) }}
	}
	small := func(name string, backdrop uint32, height, radius float64, parts ...part) picture {
		p := shot(name, backdrop, height, radius, parts...)
		p.w, p.h, p.quality = 360, 360, 90
		return p
	}
	oak := wood(0xD8AE7C, 0xA9774A, vec{1, 0, 0})
	walnut := wood(0x8A5A3A, 0x54341F, vec{1, 0, 0})
	ash := wood(0xE6D2AE, 0xC7A878, vec{0, 1, 0})
	return []picture{
		shot("p01.jpg", 0xE9DFD2, 1.15, 0.42, vase(0, 0, 1, stoneware(0xC4663F, 0x5A2A1A))),
		shot("p02.jpg", 0xD9E0DC, 1.25, 0.5, lamp(0, 0, 1, matte(0x2F5D50), brass())...),
		shot("p03.jpg", 0xEFE6D8, 0.62, 0.5, mug(-0.06, 0, 1, stoneware(0xEDE6DA, 0x6B5B4B))...),
		shot("p04.webp", 0xE3DCD3, 1.0, 0.55, stool(0, 0, 1, oak)...),
		shot("p05.jpg", 0xDCE3EA, 0.5, 0.62, bowl(0, 0, 1, glazed(0x2E5E8C))),
		shot("p06.jpg", 0xE7E2DA, 1.15, 0.62, clock(matte(0xF4F0E8), walnut)...),
		shot("p07.webp", 0xDAD7D2, 1.25, 0.5, speaker(cloth(0x55595E, 150), matte(0x26282B))...),
		shot("p08.jpg", 0xEBDDD6, 1.0, 0.72, teapot(glazed(0xB9554A), brass())...),
		shot("p09.jpg", 0xE0E4DA, 1.35, 0.78, plant(0, 0, 1, stoneware(0xE8DFD0, 0x8B7B6B))...),
		shot("p10.webp", 0xE8DCCB, 1.05, 0.6, cushion(cloth(0xD09A3C, 95))...),
		shot("p11.png", 0xDFD9D4, 1.1, 0.55, candles(brass(), matte(0xF3EBDD))...),
		shot("p12.png", 0xE4DED4, 0.98, 0.6, sideTable(0, 0, 1, walnut)...),

		small("r1.webp", 0xE2E6E4, 1.05, 0.4, bottle(0, 0, 1, glazed(0x3B7A6B))),
		small("r2.webp", 0xEADFD5, 1.25, 0.5, lamp(0, 0, 1, matte(0xC65D3B), steel())...),
		small("r3.webp", 0xE4E0D9, 1.2, 0.62, mirror(ash)...),
		small("r4.webp", 0xDDE2E8, 0.62, 0.5, mug(-0.06, 0, 1, glazed(0x31475E))...),
		small("r5.webp", 0xE9E1D6, 0.45, 0.5, join(books(0, 0, 0, 1.2, 0x31475E, 0xC65D3B, 0xE3C9A0, 0x2F5D50))...),
		small("r6.webp", 0xE6DCD8, 1.05, 0.6, cushion(cloth(0x8C4A55, 95))...),

		{"c1.jpg", 360, 240, 88, func() scene {
			return group(0xCFD8D2, join(lamp(-0.75, 0, 1.05, matte(0xE9DFCF), brass()), lamp(0.35, -0.4, 1.3, matte(0x2F5D50), brass()))...)
		}},
		{"c2.jpg", 360, 240, 88, func() scene {
			return group(0xE5CDBD, one(vase(-0.8, -0.1, 1.1, stoneware(0xF0E8DC, 0x7A6A5A)))[0], bowl(0.15, 0.35, 0.85, glazed(0xB9554A)), bottle(0.85, -0.3, 1.25, glazed(0x31475E)))
		}},
		{"c3.png", 360, 240, 0, func() scene {
			return group(0xDCCFBD, join(stool(-0.65, 0, 1.05, oak), sideTable(0.65, -0.2, 1.1, walnut))...)
		}},
		{"c4.png", 360, 240, 0, func() scene {
			return group(0xCBD3D8, join(mug(-0.75, 0.3, 1.15, stoneware(0xEDE6DA, 0x6B5B4B)), raise(0, mug(0.55, 0.35, 1.15, glazed(0x2F5D50))), books(0, 0, -0.6, 1.4, 0xC65D3B, 0xE3C9A0))...)
		}},

		{"banner.webp", 300, 200, 82, func() scene {
			return group(0x9DB4C0, join(plant(-0.55, -0.1, 1, glazed(0xF2F2EE)), speaker(cloth(0xD9D4CA, 150), matte(0x35383C)))...)
		}},
		{"hero.jpg", 1120, 792, 92, hero},
	}
}

// group frames a few things side by side.
func group(backdrop uint32, parts ...part) scene {
	s := product(backdrop, 1.2, 0.9, parts...)
	s.eye = s.at.add(vec{0.1, 0.3, 1}.unit().by(4.3))
	return s
}

// hero is a corner of a room with the sun in a window.
func hero() scene {
	table := box(vec{-3.2, 0, -0.85}, vec{3.2, 0.13, 0.62}, func(p vec) float64 {
		return roundBox(p, vec{0, 0.06, -0.12}, vec{3.1, 0.06, 0.7}, 0.02)
	}, wood(0xC89A68, 0x8F5F38, vec{1, 0, 0}))
	const top = 0.12
	parts := join(
		one(table),
		raise(top, lamp(-0.98, -0.25, 1.28, matte(0x2F5D50), brass())),
		raise(top, books(-0.28, 0, 0.02, 1.05, 0x31475E, 0xE3C9A0, 0xC65D3B)),
		raise(top+0.236, mug(-0.3, 0.02, 0.55, stoneware(0xEDE6DA, 0x6B5B4B))),
		raise(top, one(vase(0.58, -0.28, 1.12, stoneware(0xC4663F, 0x5A2A1A)))),
		raise(top, one(bowl(1.2, 0.14, 0.62, glazed(0x2E5E8C)))),
		raise(top+0.03, []part{
			pillar(1.12, 0.1, 0.15, 0.02, 0.4, func(p vec) float64 { return sphere(p, vec{1.12, 0.17, 0.1}, 0.14) }, glazed(0xD88A2E)),
			pillar(1.31, 0.18, 0.15, 0.02, 0.4, func(p vec) float64 { return sphere(p, vec{1.31, 0.18, 0.18}, 0.13) }, glazed(0xC9B23A)),
			pillar(1.22, -0.02, 0.15, 0.02, 0.4, func(p vec) float64 { return sphere(p, vec{1.24, 0.19, 0.0}, 0.13) }, glazed(0xC0562F)),
		}),
		raise(top, plant(1.95, -0.35, 1.15, stoneware(0xE8DFD0, 0x8B7B6B))),
	)
	wall := material{color: hex(0xE3D3BF)}
	return scene{
		parts: parts, floor: material{color: hex(0xB08A66)}, wall: &wall, wallZ: -0.95,
		light: vec{-1.0, 0.78, 0.62}, key: vec{1.3, 1.08, 0.8}.by(1.3), spread: 0.025,
		gobo: func(p vec) float64 { // six panes
			y, z := p.y-1.15, p.z+0.2
			if y < 0 || y > 3.4 || z < 0 || z > 2.9 {
				return 0.0
			}
			if math.Mod(y, 1.14) < 0.1 || math.Mod(z, 0.97) < 0.09 {
				return 0
			}
			return 1
		},
		eye: vec{0.45, 1.25, 4.8}, at: vec{0.38, 0.86, 0}, zoom: 1.78, vignette: 0.35,
	}
}
