package samplesite

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// product is an article on sale; prices are in cents.
type product struct {
	ID, Name, Kind, Picture string
	Cents, Was              int // Was is 0 unless the price is reduced
	Stars                   string
	Reviews                 int
	Badge                   string
}

// Price is the price as printed on the page.
func (p product) Price() string { return euros(p.Cents) }

// Before is the price before a reduction, as printed.
func (p product) Before() string { return euros(p.Was) }

func euros(cents int) string { return fmt.Sprintf("€%d.%02d", cents/100, cents%100) }

// catalogue lists the grid's products at their list prices.
func catalogue() []product {
	return []product{
		{ID: "arne", Name: "Arne vase", Kind: "Speckled stoneware", Picture: "p01.jpg", Cents: 5900},
		{ID: "lumi", Name: "Lumi table lamp", Kind: "Steel and brass", Picture: "p02.jpg", Cents: 14900},
		{ID: "kaia", Name: "Kaia mug", Kind: "Hand-thrown, 35 cl", Picture: "p03.jpg", Cents: 2400},
		{ID: "otto", Name: "Otto stool", Kind: "Solid oak", Picture: "p04.webp", Cents: 18900},
		{ID: "sund", Name: "Sund bowl", Kind: "Cobalt glaze, 28 cm", Picture: "p05.jpg", Cents: 4600},
		{ID: "tid", Name: "Tid wall clock", Kind: "Walnut, silent sweep", Picture: "p06.jpg", Cents: 9800},
		{ID: "nodi", Name: "Nodi speaker", Kind: "Two-way, wool front", Picture: "p07.webp", Cents: 24900},
		{ID: "rosa", Name: "Rosa teapot", Kind: "Porcelain, brass bow", Picture: "p08.jpg", Cents: 7900},
		{ID: "flora", Name: "Flora planter", Kind: "With euphorbia", Picture: "p09.jpg", Cents: 3900},
		{ID: "senap", Name: "Senap cushion", Kind: "Linen, 50 × 50 cm", Picture: "p10.webp", Cents: 4900},
		{ID: "glod", Name: "Glöd candle trio", Kind: "Brushed brass", Picture: "p11.png", Cents: 6900},
		{ID: "kolonn", Name: "Kolonn side table", Kind: "Fluted walnut", Picture: "p12.png", Cents: 32900},
	}
}

// related lists what the recommendations choose from.
func related() []product {
	return []product{
		{ID: "vik", Name: "Vik bottle", Picture: "r1.webp", Cents: 5400},
		{ID: "lumi-red", Name: "Lumi, brick", Picture: "r2.webp", Cents: 14900},
		{ID: "mane", Name: "Måne mirror", Picture: "r3.webp", Cents: 11900},
		{ID: "kaia-blue", Name: "Kaia, night", Picture: "r4.webp", Cents: 2400},
		{ID: "lasa", Name: "Läsa book set", Picture: "r5.webp", Cents: 6400},
		{ID: "plommon", Name: "Plommon cushion", Picture: "r6.webp", Cents: 4900},
	}
}

// visit is one load of the page: everything in it that the server chooses.
type visit struct {
	Arm      string // "a" or "b": palette and layout
	Request  string // the id printed on the page
	Nonce    string // of the policy's inline script
	Products []product
	Visitors int
	Delivery string
	Rendered time.Time
	Discount int // per cent
	Campaign string
}

// visit draws the values of a load from the site's random source.
func (s *Site) visit() visit {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.dice.visit
	now := s.opt.Clock()
	v := visit{
		Arm:      []string{"a", "b"}[r.IntN(2)],
		Request:  fmt.Sprintf("%04X-%04X-%04X", r.IntN(1<<16), r.IntN(1<<16), r.IntN(1<<16)),
		Nonce:    fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()),
		Products: priced(r, catalogue()),
		Visitors: 120 + r.IntN(900),
		Rendered: now,
		Delivery: now.AddDate(0, 0, 2+r.IntN(3)).Format("Monday 2 January"),
		Discount: 10 + 5*r.IntN(4),
		Campaign: []string{"The slow-morning edit", "Objects with patience", "Made to be kept"}[r.IntN(3)],
	}
	r.Shuffle(len(v.Products), func(i, j int) { v.Products[i], v.Products[j] = v.Products[j], v.Products[i] })
	return v
}

// priced varies prices and ratings, as a shop's own experiments do.
func priced(r *rand.Rand, list []product) []product {
	for i := range list {
		p := &list[i]
		base := p.Cents
		p.Cents = base*(85+r.IntN(26))/100/10*10 + 9
		switch r.IntN(5) {
		case 0:
			p.Was, p.Badge = base*13/10/100*100, "Sale"
		case 1:
			p.Badge = "New"
		}
		p.Reviews = 12 + r.IntN(480)
		p.Stars = fmt.Sprintf("4.%d", r.IntN(10))
	}
	return list
}
