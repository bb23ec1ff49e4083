package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// harOwnLog is the log's field _eidetic: what HAR has no field for. docs/formats/archive.md
// specifies it.
type harOwnLog struct {
	Version  int             `json:"v"` // 1
	Software string          `json:"software,omitempty"`
	Title    string          `json:"title,omitempty"`
	Wall     string          `json:"wall,omitempty"`
	Seed     string          `json:"seed"` // decimal: JavaScript would round a number
	PageDate string          `json:"page_date,omitempty"`
	Zone     string          `json:"zone,omitempty"`
	Rules    json.RawMessage `json:"rules,omitempty"`
	DNS      []DNS           `json:"dns,omitempty"`
	Imported []string        `json:"imported,omitempty"`
	Lost     int             `json:"lost,omitempty"`
}

// harOwn is an entry's field _eidetic: what a metadata record of a WARC has, and the body as it was
// on the wire, if it is not the entry's text.
type harOwn struct {
	sidecar
	ID        string `json:"id"`
	Truncated string `json:"truncated,omitempty"`
	Body      []byte `json:"body,omitempty"`
}

func ownLog(a *Archive) json.RawMessage {
	o := harOwnLog{
		Version:  1,
		Software: a.options.Software,
		Title:    a.options.Title,
		Seed:     strconv.FormatUint(a.options.Seed, 10),
		Zone:     a.options.Zone,
		Imported: a.carried().Imported,
		Lost:     a.carried().Lost,
	}
	if !a.options.Wall.IsZero() {
		o.Wall = a.options.Wall.UTC().Format(time.RFC3339Nano)
	}
	if !a.options.PageDate.IsZero() {
		o.PageDate = a.options.PageDate.UTC().Format(time.RFC3339Nano)
	}
	if len(a.options.Rules) > 0 {
		o.Rules = marshal(a.options.Rules)
	}
	for _, d := range a.dns {
		d.Wall = sane(d.Wall)
		o.DNS = append(o.DNS, d)
	}
	return marshal(o)
}

// takeOwnLog takes over the log's _eidetic. It returns false if there is none that can be used.
func (a *Archive) takeOwnLog(raw json.RawMessage) (bool, error) {
	if isNull(raw) {
		return false, nil
	}
	var o harOwnLog
	if err := json.Unmarshal(raw, &o); err != nil {
		return false, err
	}
	if o.Version != 1 {
		return false, fmt.Errorf("its version is %d (this program reads version 1)", o.Version)
	}
	seed, err := strconv.ParseUint(o.Seed, 10, 64)
	if err != nil {
		return false, fmt.Errorf("its seed %.40q is not a number", o.Seed)
	}
	var rules []Rule
	if !isNull(o.Rules) {
		if rules, err = parseRules(string(o.Rules), nil); err != nil {
			return false, err
		}
	}
	a.options = CreateOptions{
		Software: oneLine(
			o.Software,
		), Title: oneLine(o.Title), Seed: seed, Rules: rules, Wall: harTime(o.Wall), PageDate: harTime(o.PageDate),
	}
	if isZone(o.Zone) {
		a.options.Zone = o.Zone
	}
	a.options.Lost = min(max(o.Lost, 0), mostLost)
	for _, line := range o.Imported {
		a.options.addImported(line)
	}
	for _, d := range o.DNS {
		d.Wall = sane(d.Wall)
		a.dns = append(a.dns, d)
	}
	return true, nil
}

// newHAROwn is the _eidetic of an exchange whose content c is written.
func newHAROwn(e *lab.Exchange, c *harContent, late *lateTexts) harOwn {
	o := harOwn{sidecar: *newSidecar(e, false), ID: e.ID, Truncated: e.Truncated}
	switch isSame := c.Text != nil && codingOf(&e.Response) == ""; {
	case isSame:
	case int64(len(e.Response.Body)) >= late.from && len(e.Response.Body) > 0:
		o.Body, _ = late.add(func(w io.Writer) error {
			return inBase64(w, func(w io.Writer) error { _, err := w.Write(e.Response.Body); return err })
		})
	default:
		o.Body = e.Response.Body
	}
	return o
}

// asWritten returns the bytes of a content that this program wrote, or nil.
func (c *harContent) asWritten() []byte {
	switch {
	case c.Text == nil:
		return nil
	case c.Encoding == "base64":
		b, err := base64.StdEncoding.DecodeString(string(*c.Text))
		if err != nil {
			return nil
		}
		return b
	}
	return []byte(*c.Text)
}

// errNotOwn says that an entry has no _eidetic.
var errNotOwn = errors.New("the entry is another tool's")

// ownExchange is the exchange of an entry that this program wrote. What was changed in the entry
// since, its body or its messages, goes before what _eidetic says.
func (h *harEntry) ownExchange() (*lab.Exchange, error) {
	if isNull(h.Own) {
		return nil, errNotOwn
	}
	var o harOwn
	if err := json.Unmarshal(h.Own, &o); err != nil {
		return nil, err
	}
	u, isSocket, err := h.address()
	if err != nil {
		return nil, err
	}
	e := &lab.Exchange{ID: o.ID, Method: h.Request.Method, Status: int(h.Response.Status), Reason: h.Response.StatusText}
	if e.URL = ownURL(h.Request.URL, u); h.Request.Method == "" {
		return nil, errors.New("it has no method")
	}
	if e.Status != 0 && (e.Status < 100 || e.Status > 999) || e.Status == 0 && !o.Pending {
		return nil, fmt.Errorf("the status %d is impossible", e.Status)
	}
	if !strings.HasPrefix(e.ID, "urn:") || len(e.ID) > 200 || strings.ContainsAny(e.ID, "<> \t\r\n") {
		e.ID = ""
	}
	if err := h.headers(e); err != nil {
		return nil, err
	}
	if e.Request.Body, err = h.Request.body(); err != nil {
		return nil, err
	}
	if err := o.body(e, &h.Response.Content); err != nil {
		return nil, err
	}
	o.HostAdded = false // it is about a WARC's request record
	o.Wall = harTime(o.Wall).Format(time.RFC3339Nano)
	if err := o.apply(e); err != nil {
		return nil, err
	}
	if isSocket && !isNull(h.Messages) && !h.sameMessages(e) {
		h.socket(e)
	}
	return e, nil
}

// ownURL is the URL as it was recorded: as written, if it is one that nothing is to be changed in
// but for the scheme of WebSockets.
func ownURL(raw string, u lab.URL) string {
	raw, _, _ = strings.Cut(raw, "#")
	if rest, ok := strings.CutPrefix(raw, "ws"); ok {
		raw = "http" + rest
	}
	if strings.HasPrefix(raw, "http://") || strings.HasPrefix(raw, "https://") {
		return raw
	}
	return u.Sent()
}

// body sets the exchange's body: what was on the wire, unless the content was edited since.
func (o *harOwn) body(e *lab.Exchange, c *harContent) error {
	if o.Truncated != "" && !slices.Contains(truncations, o.Truncated) {
		o.Truncated = "unspecified"
	}
	e.Truncated = o.Truncated
	e.Response.Body = nonEmpty(o.Body)
	if c.Text != nil {
		text := c.asWritten()
		if len(o.Body) == 0 {
			e.Response.Body = nonEmpty(text)
		} else if decoded, err := decodeWithin(&e.Response, int64(len(text))); err != nil || !bytes.Equal(decoded, text) {
			e.Response.Body = nil
			if err := c.fill(e); err != nil {
				return err
			}
		}
	}
	o.rechunk(len(e.Response.Body))
	return nil
}

// rechunk makes the pieces of an edited body one that came when the last one did.
func (o *harOwn) rechunk(size int) {
	sum, last := int64(0), o.FirstByte
	for _, c := range o.Chunks {
		sum, last = sum+c[1], c[0]
	}
	switch {
	case sum == int64(size):
	case size == 0:
		o.Chunks = nil
	default:
		o.Chunks = [][2]int64{{last, int64(size)}}
	}
}
