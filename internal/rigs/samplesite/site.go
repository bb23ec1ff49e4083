package samplesite

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// The host names of the site, in a zone that no registry delegates (RFC 6761). Their
// addresses are of a range that no router forwards (TEST-NET-3, RFC 5737).
const (
	WWW = "www.shop.test"            // documents and modules; h2
	API = "api.shop.test"            // JSON; h2, the address and certificate of WWW, so connections may coalesce
	CDN = "cdn.shop.test"            // styles, fonts, pictures; h2
	Ads = "widgets.example-ads.test" // a third party; HTTP/1.1 only

	// Home is the URL of the page to record.
	Home = "https://" + WWW + "/"
)

// Resolver is where the authoritative name server listens unless Config says otherwise.
func Resolver() netip.AddrPort { return netip.MustParseAddrPort("203.0.113.53:53") }

// Hosts returns the address of each host name unless Config says otherwise.
func Hosts() map[string]netip.Addr {
	shop := netip.MustParseAddr("203.0.113.10")
	return map[string]netip.Addr{
		WWW: shop,
		API: shop,
		CDN: netip.MustParseAddr("203.0.113.20"),
		Ads: netip.MustParseAddr("203.0.113.30"),
	}
}

// Options are the external inputs of a site. The zero value is a live site.
type Options struct {
	// Rand decides prices, order, stock and the A/B class of each load; nil is seeded by the
	// system. A seeded site makes the same n-th response of each kind every time, whatever
	// else is requested meanwhile.
	Rand *rand.Rand
	// Clock tells the time; nil is time.Now.
	Clock func() time.Time
	// Think waits before a slow response; nil waits in real time. It returns ctx's error if the client disconnects.
	Think func(ctx context.Context, d time.Duration) error
	// Slow adds think time to a part (see Parts), to give a treatment a regression.
	Slow map[string]time.Duration
}

// Parts are the names that Options.Slow and ParseSlow know.
func Parts() []string {
	return []string{"api", "css", "document", "font", "hero", "pay", "pictures", "widget"}
}

// Site is the shop. Its methods may be called concurrently.
type Site struct {
	opt Options

	mu       sync.Mutex // guards dice and revision
	dice     dice
	revision int // of the stock list, so that no two responses are equal

	files *files
}

// dice holds one random source per kind of response: a browser's requests arrive in varying
// order and must not use each other's random numbers.
type dice struct{ visit, frame, stock, recommendations, reviews *rand.Rand }

func newDice(r *rand.Rand) dice {
	own := func() *rand.Rand { return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) }
	return dice{visit: own(), frame: own(), stock: own(), recommendations: own(), reviews: own()}
}

// New makes a site.
func New(opt Options) (*Site, error) {
	for part := range opt.Slow {
		if !known(part) {
			return nil, fmt.Errorf("slow %q: no such part; there are %s", part, strings.Join(Parts(), ", "))
		}
	}
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	if opt.Think == nil {
		opt.Think = lab.Wait
	}
	if opt.Rand == nil {
		var seed [32]byte
		crand.Read(seed[:]) // never fails (crypto/rand, since Go 1.24)
		opt.Rand = rand.New(rand.NewChaCha8(seed))
	}
	s := &Site{opt: opt, dice: newDice(opt.Rand)}
	var err error
	if s.files, err = loadFiles(); err != nil {
		return nil, fmt.Errorf("sample site: %w", err)
	}
	return s, nil
}

// HandlerFor serves only the named hosts, as one address does; others get 421 Misdirected
// Request (RFC 9110 §15.5.20).
func (s *Site) HandlerFor(hosts ...string) http.Handler {
	all := map[string]http.Handler{WWW: s.www(), API: s.api(), CDN: s.cdn(), Ads: s.ads()}
	served := map[string]http.Handler{}
	for _, h := range hosts {
		served[h] = all[h]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := served[hostOf(r)]
		if h == nil {
			http.Error(w, "this address does not serve "+r.Host, http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Redirect sends plain HTTP to https, as a shop does.
func (s *Site) Redirect() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r)
		if _, ok := Hosts()[host]; !ok {
			http.Error(w, "no such host here: "+r.Host, http.StatusMisdirectedRequest)
			return
		}
		http.Redirect(w, r, "https://"+host+r.URL.RequestURI(), http.StatusMovedPermanently)
	})
}

func hostOf(r *http.Request) string {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(host)
}

// think waits d plus what Slow adds to the part; it returns false if the client disconnects.
func (s *Site) think(r *http.Request, part string, d time.Duration) bool {
	d += s.opt.Slow[part]
	return d <= 0 || s.opt.Think(r.Context(), d) == nil
}

// ParseSlow parses "part=+200ms", as given on the command line.
func ParseSlow(text string) (part string, extra time.Duration, err error) {
	part, value, ok := strings.Cut(text, "=")
	if !ok || !known(part) {
		return "", 0, fmt.Errorf("slow %q: want PART=+DURATION such as hero=+200ms; parts are %s", text, strings.Join(Parts(), ", "))
	}
	extra, err = time.ParseDuration(strings.TrimPrefix(value, "+"))
	if err != nil || extra < 0 || extra > time.Minute {
		return "", 0, fmt.Errorf("slow %q: want a duration from 0s to 1m such as +200ms", text)
	}
	return part, extra, nil
}

func known(part string) bool {
	for _, p := range Parts() {
		if p == part {
			return true
		}
	}
	return false
}
