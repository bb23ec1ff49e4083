package netlab

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// TestFill: what a recording lacks, a page of a known host and a host that is new, is fetched from
// its origin once, and all later sessions get the same without the origin, over the same protocol.
func TestFill(t *testing.T) {
	w := newWorld(t)
	n, authority := startNetwork(t, func(c *Config) {
		c.Upstream = &proxy.UpstreamConfig{Resolver: w.resolver, Roots: w.roots, DialContext: w.dial}
	})
	path := filepath.Join(t.TempDir(), "filled.wacz")
	wall := time.Now()
	aw, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: wall})
	if err != nil {
		t.Fatal(err)
	}
	view := replay.NewView(aw, wall)
	recording := func(url, body string) *archive.Archive {
		return archive.New([]*lab.Exchange{{ID: "e", Wall: wall, Method: "GET", URL: url, Protocol: "h2", TLS: "tls/1.3", Status: 200,
			Response: lab.Message{Body: []byte(body)}}}, nil, nil, archive.CreateOptions{Wall: wall})
	}
	asked := []string{"https://www.shop.test/", "https://www.shop.test/new", "https://old.shop.test/c", "https://cdn.shop.test/b"}
	var first []string
	for session, a := range []*archive.Archive{ // of two arms, each with its own recording, in turn
		recording("https://www.shop.test/", "recorded"), recording("https://www.shop.test/", "recorded"), recording("https://www.shop.test/", "otherwise"),
	} {
		s, err := n.Replay(t.Context(), a, replay.Options{Wall: time.Now(), Miss: replay.MissFill, Fill: view, Timing: replay.Timing{Mode: replay.TimingNone}})
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(t, n, authority, false)
		var got []string
		for _, u := range asked {
			status, body, proto := d.get(t, u)
			if status != 200 {
				t.Fatalf("session %d: %s is answered %d %s", session, u, status, body)
			}
			got = append(got, proto+" "+body)
		}
		if _, err := d.Get("https://nowhere.test/"); err == nil {
			t.Errorf("session %d: a name that does not exist has an address", session)
		}
		d.CloseIdleConnections()
		n.Disarm()
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
		live := 0
		if session == 0 {
			first, live = got, 3
		}
		if st := s.Stats(); st.Live != live || st.Misses != 0 || st.InFlight != 0 {
			t.Errorf("session %d: Stats() = %+v; want %d fetched, no miss, none in flight", session, st, live)
		}
		if strings.Join(got[1:], ", ") != strings.Join(first[1:], ", ") {
			t.Errorf("session %d got %q; want %q, as the first", session, got[1:], first[1:])
		}
		w.mu.Lock()
		w.down = true
		hits := w.hits
		w.mu.Unlock()
		if hits != 3 {
			t.Errorf("after session %d, %d requests have reached the origins; want 3", session, hits)
		}
	}
	if err := aw.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := archive.Open(path)
	if err != nil || len(a.Exchanges()) != 3 || len(a.DNS()) == 0 {
		t.Fatalf("the archive of what was fetched has %d exchanges and %d answers of DNS, %v; want 3, and those of two names", len(a.Exchanges()), len(a.DNS()), err)
	}
	if _, err := n.Replay(t.Context(), a, replay.Options{Miss: replay.MissFill}); err == nil {
		t.Error("Replay without Options.Fill = nil error; want one")
	}
}
