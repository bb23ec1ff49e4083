package wire

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"

	"eidetic/netlab/message"
)

// obsolete is the section of RFC 7540 whose priorities RFC 9113 took out
// (5.3.2: they are to be passed over), so that its errors are none any more.
const obsolete = "5.3.1"

// TestH2spec runs the conformance suite of HTTP/2 and HPACK (RFC 7540, 7541)
// that other servers are tried with.
func TestH2spec(t *testing.T) {
	s := newStand(t, "h2", echo)
	addr, err := net.ResolveTCPAddr("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "h2spec.xml")
	quiet(t, func() {
		_, err := h2spec.Run(&config.Config{
			Host: "127.0.0.1", Port: addr.Port, Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000,
			TLS: true, Insecure: true, Strict: true, JUnitReport: file,
		})
		if err != nil {
			t.Error(err)
		}
	})
	var report struct {
		Suites []struct {
			Name  string `xml:"name,attr"`
			ID    string `xml:"id,attr"`
			Cases []struct {
				Name  string `xml:"classname,attr"`
				Error *struct {
					Text string `xml:",innerxml"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = xml.Unmarshal(b, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			n++
			if c.Error != nil && suite.ID != obsolete {
				t.Errorf("%s: %s\n%s", suite.Name, c.Name, c.Error.Text)
			}
		}
	}
	if n < 140 {
		t.Errorf("only %d cases were run", n)
	}
}

// quiet runs f with standard output going nowhere: h2spec prints as it goes.
func quiet(t *testing.T, f func()) {
	out := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = null
	defer func() { os.Stdout = out; _ = null.Close() }()
	f()
}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if errors.Is(err, message.ErrFraming) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprintf(w, "%s %s %s\n%s", r.Method, r.Host, r.RequestURI, body) // the device may be gone
}
