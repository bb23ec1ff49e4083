package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

var (
	pairSeed  = flag.Uint64("pairs.seed", 1, "what the combinations of TestPairs are drawn from")
	pairCount = flag.Int("pairs.n", 110, "how many combinations TestPairs draws")
	pairMade  = flag.String("pairs.parts", "", `a combination for TestPairs to load alone: {"role":"script","coding":"br"}`)
)

// TestPairs loads odd pages directly, through the box while it records, and from the recording. The browser must see
// the same each time: picture, text, what scripts were told, what was loaded and how large it was; and the origin must
// be asked the same. What make test leaves out is the rest of the pages.
func TestPairs(t *testing.T) {
	tryPairs(t, newChromiumViewer, testlab.Repeat(8, 1000), everyChoice, nil)
}

func TestPairsInFirefox(t *testing.T) {
	testlab.Long(t, "second browser")
	tryPairs(t, newFirefoxViewer, 1000, readAlike, func(p *oddPage) bool {
		if p.parts["role"] == "object" && p.insecure {
			return true // it asks for these as for a fetch(), so they do not get the script
		}
		// Firefox decodes these over https only, and shows a document's coded bytes, with the script in them.
		isDocument := findRole(p.parts["role"]).mime == "text/html" && p.parts["role"] != "xhr"
		return isDocument && p.insecure && (strings.HasPrefix(p.parts["coding"], "br") || strings.HasPrefix(p.parts["coding"], "zstd"))
	})
}

func tryPairs(
	t *testing.T, browser func(*testing.T, *stand, *junction, *junction) viewer, most int, takes func(choice) bool, differs func(*oddPage) bool,
) {
	pages := slices.Concat(shapes(takes), combinations(*pairSeed, *pairCount, takes))
	switch {
	case *pairMade != "":
		var p parts
		check(t, json.Unmarshal([]byte(*pairMade), &p))
		pages = []*oddPage{combine("made.test", p)}
	case len(pages) > most:
		pages = telling(pages, most)
	}
	if differs != nil {
		pages = slices.DeleteFunc(pages, differs)
	}
	pages = named(t, pages)
	s := newStand(t)
	l := &pairLab{stand: s, plain: newJunction(t), secure: newJunction(t)}
	l.viewer = browser(t, s, l.plain, l.secure)
	differ := l.try(t, pages)
	again := slices.DeleteFunc(slices.Clone(pages), func(p *oddPage) bool { return differ[p.host] == "" })
	if len(again) > 0 { // what a busy machine or a race of the page makes differ is not the same twice
		once := differ
		differ = l.try(t, again)
		for _, p := range again {
			if differ[p.host] == "" {
				t.Logf("%s (%s) differed once:\n%s", p.name, p.url(), once[p.host])
			}
		}
	}
	for _, p := range pages {
		t.Run(p.host, func(t *testing.T) {
			if d := differ[p.host]; d != "" {
				t.Errorf("%s (%s) differs:\n%s", p.name, p.url(), d)
			}
		})
	}
	l.explain(t, pages, differ)
}

// named are the pages whose subtest -run names: a second try loads only those that failed.
func named(t *testing.T, pages []*oddPage) []*oddPage {
	_, host, isNamed := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	if !isNamed {
		return pages
	}
	matches, err := regexp.Compile(host)
	check(t, err)
	return slices.DeleteFunc(pages, func(p *oddPage) bool { return !matches.MatchString(p.host) })
}

// isBrowsersOwn tells what a browser asks for when it likes: whether before a page is left, is chance.
func isBrowsersOwn(url string) bool {
	return strings.HasSuffix(url, "/favicon.ico") || strings.Contains(url, "/report")
}

// telling are the pages that make test loads: those that show most.
func telling(pages []*oddPage, n int) (some []*oddPage) {
	some = slices.DeleteFunc(slices.Clone(pages), func(p *oddPage) bool { return !p.telling })
	return some[:min(len(some), n)]
}

// pairLab is a browser whose connections lead to an origin or to the box.
type pairLab struct {
	*stand
	plain, secure *junction
	viewer        viewer
}

// show loads pages in one way.
func (l *pairLab) show(t *testing.T, o *pairOrigin, pages []*oddPage, plain, secure string) map[string]*sight {
	l.plain.to.Store(&plain)
	l.secure.to.Store(&secure)
	o.again()
	sights := map[string]*sight{}
	open, end := l.viewer.begin(t)
	var mu sync.Mutex
	var tabs sync.WaitGroup
	left := slices.Clone(pages)
	for _, show := range open {
		tabs.Go(func() {
			for {
				mu.Lock()
				if len(left) == 0 {
					mu.Unlock()
					return
				}
				p := left[0]
				left = left[1:]
				mu.Unlock()
				began := time.Now()
				s := show(t, p.url())
				if took := time.Since(began); took >= patience {
					t.Logf("%s (%s) took %v: %s", p.name, p.url(), took.Round(time.Second), s.Failed)
				}
				mu.Lock()
				sights[p.host] = s
				mu.Unlock()
			}
		})
	}
	tabs.Wait()
	end()
	o.drop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for host, s := range sights {
		s.Asked = slices.Sorted(slices.Values(o.seen[host]))
	}
	return sights
}

// try returns how pages differ, by host.
func (l *pairLab) try(t *testing.T, pages []*oddPage) map[string]string {
	o := newPairOrigin(t, l.authority, pages)
	began := time.Now()
	direct := l.show(t, o, pages, o.plain.Addr().String(), o.secure.Addr().String())
	directly := time.Since(began)
	path := filepath.Join(t.TempDir(), "pairs.wacz")
	date := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now(), Seed: 11, PageDate: date})
	check(t, err)
	defer func() { _ = w.Discard() }()
	up := proxy.NewUpstream(proxy.UpstreamConfig{
		Roots: l.authority.Pool(),
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			to := o.secure
			if strings.HasSuffix(addr, ":80") {
				to = o.plain
			}
			return new(net.Dialer).DialContext(ctx, network, to.Addr().String())
		},
	})
	defer up.Close()
	rec := replay.NewRecorder(w, up, replay.RecordOptions{
		Clock: lab.Monotonic, Wall: time.Now, Inject: inject.Options{Seed: 11, Date: date}, Protocols: up.Protocols,
	})
	l.core.set(rec, rec.Protocols)
	began = time.Now()
	recorded := l.show(t, o, pages, l.http, l.https)
	while := time.Since(began)
	check(t, rec.Wait())
	check(t, w.Close())
	a, err := archive.Open(path)
	check(t, err)
	var mu sync.Mutex
	missed := map[string]string{}
	session, err := replay.NewSession(a, replay.Options{
		Clock: lab.Monotonic, Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}, Log: func(line lab.Served) {
			mu.Lock()
			defer mu.Unlock()
			if p := o.page(lab.ParseURL(line.URL).Hostname()); p != nil && line.Stage == lab.StageMiss && !isBrowsersOwn(line.URL) {
				missed[p.host] += fmt.Sprintf("  missed %s %.200s: %s (nearest %.200s)\n", line.Method, line.URL, line.Why, line.RunnerUp)
			}
		},
	})
	check(t, err)
	l.core.set(session, session.Protocols)
	began = time.Now()
	replayed := l.show(t, o, pages, l.http, l.https)
	t.Logf("%d pages: %v directly, %v recorded, %v replayed", len(pages), directly, while, time.Since(began))
	mu.Lock()
	defer mu.Unlock()
	differ := map[string]string{}
	for _, p := range pages {
		d := compare("directly", "recorded", direct[p.host], recorded[p.host], true) +
			compare("recorded", "replayed", recorded[p.host], replayed[p.host], false) + missed[p.host]
		if d != "" {
			differ[p.host] = d
		}
	}
	return differ
}

// compare says how two sights differ, or nothing.
func compare(one, other string, a, b *sight, first bool) (text string) {
	x, y := *a, *b
	if first { // Directly, nothing is seeded.
		x.Seeds, y.Seeds = nil, nil
		x.Entries, y.Entries = withoutScript(x.Entries, y.Entries)
	} else { // The origin of a replay is the recording.
		x.Asked, y.Asked = nil, nil
		if strings.HasPrefix(x.URL, "http:") { // Without Sec-Fetch-Dest, nothing tells that a file is a worker's.
			x.Seeds, y.Seeds = withoutWorker(x.Seeds), withoutWorker(y.Seeds)
		}
	}
	for _, f := range []struct{ name, a, b string }{
		{"failure", x.Failed, y.Failed}, {"address", x.URL, y.URL}, {"referrer", x.Referrer, y.Referrer}, {"charset", x.Charset, y.Charset},
		{"mode", x.Mode, y.Mode}, {"type", x.Type, y.Type}, {"cookies", x.Cookies, y.Cookies}, {"origin", x.Origin, y.Origin}, {"language", x.Lang, y.Lang},
		{"isolation", fmt.Sprint(x.Isolated, x.Secure), fmt.Sprint(y.Isolated, y.Secure)},
	} {
		if f.a != f.b {
			text += fmt.Sprintf("  %s:\n    -%s\n    +%s\n", f.name, f.a, f.b)
		}
	}
	if x.Failed != y.Failed {
		return fmt.Sprintf("  -%s +%s\n%s", one, other, text)
	}
	told := lists(reportOf(x.Report), reportOf(y.Report))
	text += told + lists(seedsOf(x.Seeds), seedsOf(y.Seeds)) + lists(x.Seen, y.Seen) + lists(x.Entries, y.Entries) + lists(x.Asked, y.Asked)
	if told == "" { // which the text shows, and the picture
		text += around("text", x.Text, y.Text) + around("DOM", x.DOM, y.DOM)
		if !bytes.Equal(x.picture, y.picture) && !equalPictures(x.picture, y.picture) {
			text += "  the pictures differ\n"
		}
	}
	if text != "" {
		text = fmt.Sprintf("  -%s +%s\n%s", one, other, text)
	}
	return text
}

// reportOf lists what a page told.
func reportOf(text string) (list []string) {
	var told map[string]string
	if json.Unmarshal([]byte(text), &told) != nil {
		return []string{text}
	}
	for _, key := range slices.Sorted(maps.Keys(told)) {
		list = append(list, key+": "+told[key])
	}
	return list
}

// seedsOf lists the first random numbers of a page's realms.
func seedsOf(text json.RawMessage) (list []string) {
	var drawn map[string]any
	if json.Unmarshal(text, &drawn) != nil {
		return []string{string(text)}
	}
	for _, realm := range slices.Sorted(maps.Keys(drawn)) {
		list = append(list, fmt.Sprintf("random numbers of %s: %v", realm, drawn[realm]))
	}
	return list
}

// withoutWorker leaves out what a worker drew that has a file.
func withoutWorker(text json.RawMessage) json.RawMessage {
	var drawn map[string]any
	if json.Unmarshal(text, &drawn) != nil {
		return text
	}
	delete(drawn, "worker")
	left, _ := json.Marshal(drawn) // it was JSON
	return left
}

// lists says what one list has that the other lacks.
func lists(a, b []string) (text string) {
	for _, one := range a {
		if !slices.Contains(b, one) {
			text += fmt.Sprintf("    -%.1500s\n", one)
		}
	}
	for _, one := range b {
		if !slices.Contains(a, one) {
			text += fmt.Sprintf("    +%.1500s\n", one)
		}
	}
	return text
}

// around shows where two texts begin to differ.
func around(name, a, b string) string {
	if a == b {
		return ""
	}
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from, frame := max(0, n-60), strings.LastIndex(a[:n], " src=")
	return fmt.Sprintf("  %s at %d (behind %.40q):\n    -%.200q\n    +%.200q\n", name, n, a[max(0, frame):], a[from:], b[from:])
}

func equalPictures(a, b []byte) bool {
	x, err := png.Decode(bytes.NewReader(a))
	y, err2 := png.Decode(bytes.NewReader(b))
	return err == nil && err2 == nil && reflect.DeepEqual(x, y)
}

// withoutScript evens out the sizes of documents, workers and what those import, which have the box's script in them:
// it is part of what was loaded.
func withoutScript(direct, recorded []string) (x, y []string) {
	x, y = slices.Clone(direct), slices.Clone(recorded)
	added := int64(len(inject.NewScript(inject.Options{}).Text()))
	cached := map[string]bool{} // through the box
	for _, entry := range recorded {
		if e := strings.Split(entry, "\t"); e[deliveryAt] == "cache" {
			cached[e[1]] = true
		}
	}
	for i := range y {
		b := strings.Split(y[i], "\t")
		for j := range x {
			a := strings.Split(x[j], "\t")
			if a[1] == b[1] && (a[protocolAt] == "http/0.9" || a[deliveryAt] == "cache" && !cached[b[1]]) {
				// The box speaks HTTP/1.1 where an origin sends a body alone, which Chromium takes for one from its
				// cache. What is asked of the origin tells a real one.
				a[protocolAt], a[sizesAt], a[deliveryAt] = b[protocolAt], b[sizesAt], b[deliveryAt]
				x[j] = strings.Join(a, "\t")
			}
			if !slices.Equal(a[:sizesAt], b[:sizesAt]) || sizeOf(a) < 0 || sizeOf(b)-sizeOf(a) < added {
				continue
			}
			for at := range 3 {
				a[sizesAt+at], b[sizesAt+at] = "", ""
			}
			if a[typeAt] == "" { // a document without a type gets one with the charset that it declares
				b[typeAt] = ""
			}
			x[j], y[i] = strings.Join(a, "\t"), strings.Join(b, "\t")
			break
		}
	}
	return x, y
}

// Where an entry has its protocol, its three sizes, its Content-Type, and whether it was cached.
const protocolAt, sizesAt, typeAt, deliveryAt = 3, 4, 8, 10

func sizeOf(entry []string) int64 {
	n, err := strconv.ParseInt(entry[sizesAt+2], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// explain tells which parts of a combination differ: without one of them, the page is the same in all ways.
func (l *pairLab) explain(t *testing.T, pages []*oddPage, differ map[string]string) {
	const most = 8 // pages, since each is loaded again for each of its parts
	var reduced []*oddPage
	var of []string
	for _, p := range pages {
		if differ[p.host] == "" || p.parts == nil || !slices.Contains(of, p.host) && len(slices.Compact(slices.Clone(of))) >= most {
			continue
		}
		for _, part := range slices.Sorted(maps.Keys(p.parts)) {
			reduced = append(reduced, combine(fmt.Sprintf("%s.%s", part, p.host), p.parts.without(part)))
			of = append(of, p.host)
		}
	}
	if len(reduced) == 0 || *pairMade != "" {
		return
	}
	left := l.try(t, reduced)
	because := map[string][]string{}
	for i, p := range reduced {
		if left[p.host] == "" {
			because[of[i]] = append(because[of[i]], strings.SplitN(p.host, ".", 2)[0])
		}
	}
	for _, p := range pages {
		if slices.Contains(of, p.host) {
			made, _ := json.Marshal(p.parts) // a map of texts always has a form
			t.Logf("%s: its parts %q matter. Alone: go test ./netlab/replay/conformance -run %s -pairs.parts '%s'", p.host, because[p.host], t.Name(), made)
		}
	}
}
