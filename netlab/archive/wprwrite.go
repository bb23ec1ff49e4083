package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"eidetic/internal/lab"

	"github.com/klauspost/compress/gzip"
)

// ExportWPR writes the exchanges as an archive of Web Page Replay, which that program replays and wprRead reads. It
// returns what the file lacks, a line each, up to a bound: what has no answer, WebSockets, and the rest of bodies
// that were cut off. Times, order, addresses and trailers have no place in the format.
func ExportWPR(w io.Writer, a *Archive) (lost []string, err error) {
	lose := func(e *lab.Exchange, why string) {
		if len(lost) < mostLines {
			lost = append(lost, fmt.Sprintf("%d %s %.200s: %s", e.Order, e.Method, e.URL, why))
		}
	}
	hosts, protocols := map[string]map[string][]*lab.Exchange{}, map[string]string{}
	for _, e := range a.exchanges {
		u := lab.ParseURL(e.URL)
		switch {
		case e.Status == 0:
			lose(e, "left out: it has no answer")
			continue
		case isSocketExchange(e) || e.Status < 200:
			lose(e, "left out: Web Page Replay has no WebSockets")
			continue
		case e.Truncated != "":
			lose(e, fmt.Sprintf("its body was cut off (%s), and is written as if it were whole", e.Truncated))
		}
		if hosts[u.Host] == nil {
			hosts[u.Host] = map[string][]*lab.Exchange{}
		}
		key := lab.NetURL(e.URL).String() // as that program asks for it
		hosts[u.Host][key] = append(hosts[u.Host][key], e)
		if u.Scheme == "https" && (e.Protocol != "http/1.1" || protocols[u.Hostname()] == "") {
			protocols[u.Hostname()] = map[bool]string{true: "http/1.1", false: "h2"}[strings.HasPrefix(e.Protocol, "http/1")]
		}
	}
	z := gzip.NewWriter(w)
	if err := writeWPR(z, a, hosts, protocols); err != nil {
		return nil, fmt.Errorf("export to Web Page Replay: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("export to Web Page Replay: %w", err)
	}
	return lost, nil
}

func writeWPR(w io.Writer, a *Archive, hosts map[string]map[string][]*lab.Exchange, protocols map[string]string) error {
	text := &errWriter{w: w}
	text.put(`{"Requests":{`)
	for i, host := range slices.Sorted(maps.Keys(hosts)) {
		text.comma(i)
		text.json(host)
		text.put(":{")
		for i, url := range slices.Sorted(maps.Keys(hosts[host])) {
			text.comma(i)
			text.json(url)
			text.put(":[")
			for i, e := range hosts[host][url] {
				text.comma(i)
				text.put(`{"SerializedRequest":"`)
				text.base64(wprRequest(e), e.Request.Body)
				text.put(`","SerializedResponse":"`)
				text.base64(wprResponse(e), e.Response.Body)
				text.put(`","LastServedSessionId":0}`)
			}
			text.put("]")
		}
		text.put("}")
	}
	began := a.options.PageDate
	if began.IsZero() {
		began = a.options.Wall
	}
	text.put(`},"Certs":{},"NegotiatedProtocol":`)
	text.json(protocols)
	// Of several answers to one URL Web Page Replay gives the next each time only if it is told to.
	fmt.Fprintf(text, `,"DeterministicTimeSeedMs":%d,"ServeResponseInChronologicalSequence":true,"CurrentSessionId":0,`+
		`"DisableFuzzyURLMatching":false}`+"\n", max(began.UnixMilli(), 0))
	return text.err
}

// wprRequest is the head of a request with the length of its body.
func wprRequest(e *lab.Exchange) []byte {
	one := *e
	one.Request.Header = framed(e.Request.Header, len(e.Request.Body), len(e.Request.Body) > 0)
	head, _ := requestHead(&one)
	return head
}

// wprResponse is the head of an answer with the length of its body, where an answer may have one.
func wprResponse(e *lab.Exchange) []byte {
	one := *e
	one.Response.Header = framed(e.Response.Header, len(e.Response.Body), e.Method != "HEAD" && e.Status != 204 && e.Status != 304)
	return responseHead(&one)
}

// framed replaces what a header says of the length of its body.
func framed(fields []lab.HeaderField, n int, hasBody bool) []lab.HeaderField {
	if !hasBody {
		return fields
	}
	out := slices.DeleteFunc(slices.Clone(fields), func(f lab.HeaderField) bool {
		return strings.EqualFold(f.Name, "Content-Length") || strings.EqualFold(f.Name, "Transfer-Encoding")
	})
	return append(out, lab.HeaderField{Name: "Content-Length", Value: fmt.Sprint(n)})
}

// errWriter writes until the first error, which it keeps.
type errWriter struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (t *errWriter) Write(p []byte) (int, error) {
	if t.err == nil {
		_, t.err = t.w.Write(p)
	}
	return len(p), t.err
}

func (t *errWriter) put(s string) { _, _ = io.WriteString(t, s) }

func (t *errWriter) comma(i int) {
	if i > 0 {
		t.put(",")
	}
}

func (t *errWriter) json(v any) {
	b, err := json.Marshal(v)
	if t.err == nil {
		t.err = err
	}
	_, _ = t.Write(b)
}

func (t *errWriter) base64(parts ...[]byte) {
	z := base64.NewEncoder(base64.StdEncoding, t)
	for _, p := range parts {
		_, _ = io.Copy(z, bytes.NewReader(p))
	}
	_ = z.Close()
}
