package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
)

// protocolPage tells its origin which protocol it came by, so that the
// recording and the replay's log have it.
const protocolPage = `<!doctype html><title>x</title><script>
fetch('/came-by/' + performance.getEntriesByType('navigation')[0].nextHopProtocol).then(r => r.text()).then(
	text => fetch('/fetched-by/' + performance.getEntriesByType('resource').at(-1).nextHopProtocol + '/' + text));
</script>`

// quicSite serves host over HTTP/3 and HTTP/2 at addr, and its name at port 53.
func quicSite(t *testing.T, host, addr string, authority *ca.Authority) (stop func()) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"; ma=600`)
		switch {
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, protocolPage)
		case strings.Contains(r.URL.Path, "-by/"):
			_, _ = io.WriteString(w, "ok")
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	tcp, err := net.Listen("tcp", addr+":443")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", addr+":443")
	if err != nil {
		t.Fatal(err)
	}
	names, err := net.ListenPacket("udp", addr+":53")
	if err != nil {
		t.Fatal(err)
	}
	site := &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	site3 := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{GetCertificate: authority.GetCertificate})}
	resolver := &dns.Server{PacketConn: names, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		q := r.Question[0]
		if strings.TrimSuffix(q.Name, ".") != host {
			m.Rcode = dns.RcodeNameError
		} else if q.Qtype == dns.TypeA {
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(addr)}}
		}
		_ = w.WriteMsg(m)
	})}
	done := make(chan struct{}, 3)
	go func() { _ = site.ServeTLS(tcp, "", ""); done <- struct{}{} }()
	go func() { _ = site3.Serve(udp); done <- struct{}{} }()
	go func() { _ = resolver.ActivateAndServe(); done <- struct{}{} }()
	return func() {
		_ = site.Close()
		_ = site3.Close()
		_ = udp.Close()
		_ = names.Close()
		for range cap(done) {
			<-done
		}
	}
}

// TestPagesAreRecordedAndReplayedOverHTTP3: the browser itself says which
// protocol it spoke, live and when the origin is gone.
func TestPagesAreRecordedAndReplayedOverHTTP3(t *testing.T) {
	testlab.Long(t, "conformance cases speak HTTP/3")
	needLab(t)
	if !nstest.Inside(t) {
		return
	}
	const host, addr = "quic.test", "203.0.113.40"
	nstest.Here(t).Address(t, "lo", addr+"/32")
	origins, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	stop := quicSite(t, host, addr, origins)
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root.pem"), filepath.Join(dir, "quic.wacz")
	if err := os.WriteFile(root, origins.PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	page := "https://" + host + "/"
	got := finishCmd(t, appliance(t, "record", "--archive", file, "--http3", "--resolver", addr+":53", "--trust", root, page))
	stop()
	if got.status != exitGood || !strings.Contains(got.err, "HTTP/3 with "+host) {
		t.Fatalf("recording: %+v", got)
	}
	a, err := archive.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "came-by/h3", "fetched-by/h3/ok"} {
		found := false
		for _, e := range a.Exchanges() {
			found = found || e.URL == page+path && e.Protocol == "h3"
		}
		if !found {
			t.Errorf("%s was not recorded over HTTP/3", page+path)
		}
	}
	logged := filepath.Join(dir, "log.jsonl")
	got = finishCmd(t, appliance(t, "replay", "--archive", file, "--log", logged, page))
	text, err := os.ReadFile(logged)
	if err != nil {
		t.Fatal(err)
	}
	missed, icons := misses(t, text)
	if want := map[bool]int{false: exitGood, true: exitFailed}[len(icons) > 0]; got.status != want || len(missed) > 0 {
		t.Errorf("replaying: %+v missed %q\n%s", got, missed, text)
	}
	for _, path := range []string{"came-by/h3", "fetched-by/h3/ok"} {
		if !strings.Contains(string(text), fmt.Sprintf("%q", page+path)) {
			t.Errorf("%s was not asked for in the replay:\n%s", page+path, text)
		}
	}

	// A trial's browser is told as well. Whether the trial counts is the machine's affair.
	out := filepath.Join(dir, "run")
	got = finishCmd(
		t,
		appliance(t, "demo", "--archive", file, "--page", page, "--link", "native", "--trials", "1", "--no-serve", "--out", out),
	)
	folder, run := readRun(t, out)
	if len(run.Trials) < 1 || run.Trials[0].Misses != 0 {
		t.Fatalf("a trial of it: %+v", got)
	}
	asked := strings.Join(bag(t, folder, run.Trials[0]), "\n")
	for _, path := range []string{"", "came-by/h3", "fetched-by/h3/ok"} {
		if want := "GET " + page + path + " h3 "; !strings.Contains(asked, want) {
			t.Errorf("the trial did not ask %q but:\n%s", want, asked)
		}
	}
}

// misses is what a log of answers has as missed, icons by themselves: whether a
// browser asks for those before it is closed is a matter of luck, while
// recording as well as now.
func misses(t *testing.T, log []byte) (urls, icons []string) {
	t.Helper()
	for decoder := json.NewDecoder(bytes.NewReader(log)); decoder.More(); {
		var s lab.Served
		if err := decoder.Decode(&s); err != nil {
			t.Fatal(err)
		}
		switch {
		case s.Stage != lab.StageMiss:
		case strings.HasSuffix(s.URL, "/favicon.ico"):
			icons = append(icons, s.URL)
		default:
			urls = append(urls, s.URL)
		}
	}
	return urls, icons
}
