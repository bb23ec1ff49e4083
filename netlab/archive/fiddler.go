package archive

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// A session archive of Fiddler (.saz) is a zip with three or four files for each session: raw/12_c.txt, what the client
// sent, raw/12_s.txt, what the server answered, both as HTTP text, raw/12_m.xml, their times, and raw/12_w.txt, the
// frames of a WebSocket.

// sessionFile matches the names of the first, and captures the number.
var sessionFile = regexp.MustCompile(`^(?:.*/)?(\d{1,9})_c\.txt$`) // constant

// fiddlerMeta is what is used of the times and flags of a session.
type fiddlerMeta struct {
	Timers struct {
		Client   string `xml:"ClientBeginRequest,attr"`
		Sent     string `xml:"FiddlerBeginRequest,attr"`
		Answered string `xml:"ServerBeginResponse,attr"`
		Done     string `xml:"ServerDoneResponse,attr"`
	} `xml:"SessionTimers"`
	Flags []fiddlerFlag `xml:"SessionFlags>SessionFlag"`
}

type fiddlerFlag struct {
	Name  string `xml:"N,attr"`
	Value string `xml:"V,attr"`
}

// fiddlerSessions are the sessions of a zip by their numbers: the names of their first files without the ending.
func fiddlerSessions(files map[string]*zip.File) map[int]string {
	sessions := map[int]string{}
	for name := range files {
		if m := sessionFile.FindStringSubmatch(strings.ToLower(name)); m != nil && !isNote(name) {
			n, _ := strconv.Atoi(m[1]) // they are digits
			sessions[n] = strings.TrimSuffix(name, path.Base(name)) + path.Base(name)[:len(m[1])]
		}
	}
	return sessions
}

// openFiddler reads the sessions of a zip.
func (a *Archive) openFiddler(sessions map[int]string, files map[string]*zip.File, l Limits) error {
	hi := newHARImport(a, l)
	hi.foreign, a.options.Software = true, "Fiddler"
	byLower := map[string]*zip.File{}
	for name, f := range files {
		byLower[strings.ToLower(name)] = f
	}
	for _, n := range slices.Sorted(maps.Keys(sessions)) {
		hi.entries++
		if err := hi.session(n, func(kind string) ([]byte, error) {
			f := byLower[strings.ToLower(sessions[n]+kind)]
			if f == nil {
				return nil, nil
			}
			text, err := readZipped(f, l)
			if err != nil {
				err = fmt.Errorf("%s in the zip: %w", f.Name, err)
			}
			return text, err
		}); err != nil {
			return err
		}
	}
	hi.finish()
	if a.notes = hi.notes.lines(); len(a.exchanges) == 0 {
		a.found = fmt.Sprintf("a session archive of Fiddler of which all %d sessions are left out: %s", hi.entries, strings.Join(a.notes, "; "))
	}
	return nil
}

// session takes a session, or notes why it is left out. An error ends the reading.
func (hi *harImport) session(n int, read func(kind string) ([]byte, error)) error {
	place := fmt.Sprint("session ", n)
	var parts [4][]byte
	taken := int64(0)
	defer func() { hi.limits.budget.give(taken) }()
	for i, kind := range []string{"_c.txt", "_s.txt", "_m.xml", "_w.txt"} {
		var err error
		if parts[i], err = read(kind); errors.Is(err, errLimit) {
			return err
		} else if err != nil {
			hi.a.lost++
			hi.notes.add(place, "", fmt.Sprintf("left out: %v", err))
			return nil
		}
		taken += int64(len(parts[i]))
	}
	var meta fiddlerMeta
	unread := error(nil)
	if parts[2] != nil {
		cost := textCost * int64(len(parts[2]))
		if err := hi.limits.budget.take(cost); err != nil {
			return err
		}
		unread = xml.Unmarshal(bytes.TrimPrefix(parts[2], []byte(byteOrderMark)), &meta)
		hi.limits.budget.give(cost)
	}
	pieces := hi.limits.budget.child()
	defer pieces.drop()
	e, err := meta.exchange(parts[0], parts[1], parts[3], hi.limits, pieces)
	switch {
	case errors.Is(err, errLimit):
		return fmt.Errorf("%s: %w", place, err)
	case err != nil:
		hi.notes.add(place, e.URL, fmt.Sprintf("left out: %v", err))
		if !errors.Is(err, errNothing) {
			hi.a.lost++
		}
		return nil
	}
	if unread != nil || parts[2] == nil {
		hi.notes.add(place, e.URL, "without times, whose file (_m.xml) is missing or damaged")
	}
	if isSocketExchange(e) && len(e.Socket) == 0 {
		hi.notes.add(place, e.URL, "a WebSocket without messages (_w.txt) that can be read, which stays silent")
	}
	pieces.drop() // they are part of the cost
	if err := hi.limits.budget.take(costOf(e)); err != nil {
		return err
	}
	settleBody(e, &hi.notes)
	e.Request.Body, e.Response.Body = bytes.Clone(e.Request.Body), bytes.Clone(e.Response.Body)
	hi.keep(n, e.Wall.String(), "", e)
	return nil
}

// flag is the value of a session's flag, "" for none.
func (m *fiddlerMeta) flag(name string) string {
	for _, f := range m.Flags {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// exchange makes an exchange of what a session has, whose pieces of a WebSocket the budget counts. Also one that is left out
// has its address, as far as it is known.
func (m *fiddlerMeta) exchange(request, response, frames []byte, l Limits, pieces *budget) (*lab.Exchange, error) {
	e := &lab.Exchange{}
	line, _, _ := bytes.Cut(request, []byte("\n"))
	words := strings.Fields(string(line[:min(len(line), l.Header)]))
	if err := parseRequest(e, request, l); err != nil {
		return e, fmt.Errorf("its request cannot be read: %w", err)
	}
	if len(words) < 2 {
		return e, errors.New("its request has no address")
	}
	target := words[1]
	if strings.HasPrefix(target, "/") {
		scheme := "http"
		isSecure := func(f fiddlerFlag) bool { return strings.HasPrefix(strings.ToLower(f.Name), "https-client-") }
		if slices.ContainsFunc(m.Flags, isSecure) {
			scheme = "https"
		}
		target = scheme + "://" + e.Request.Get("Host") + target
	}
	u := lab.ParseURL(target)
	e.URL = u.Sent()
	switch {
	case e.Method == "CONNECT":
		return e, fmt.Errorf("%wa request for a tunnel through the proxy", errNothing)
	case !u.IsWeb():
		return e, errors.New("its address is not one of http or https with a host")
	case len(bytes.TrimSpace(response)) == 0:
		return e, fmt.Errorf("%wit has no answer", errNothing)
	}
	e.URL = browserURL(e.URL)
	if err := parseResponse(e, response, l); err != nil {
		return e, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if strings.HasPrefix(e.Reason, "Fiddler - ") {
		return e, fmt.Errorf("%wit failed (%.80s)", errNothing, e.Reason)
	}
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if ip, err := netip.ParseAddr(m.flag("x-hostIP")); err == nil {
		e.Server = netip.AddrPortFrom(ip, portOf(e.URL))
	}
	begin := harTime(cmp.Or(m.Timers.Sent, m.Timers.Client))
	if begin.Year() <= 1 { // .NET's time of what was not
		begin = harTime(m.Timers.Client)
	}
	if e.Wall = begin; begin.Year() <= 1 {
		e.Wall = time.Time{}
	}
	e.FirstByte = sinceThen(e.Wall, harTime(m.Timers.Answered))
	if isSocketExchange(e) {
		e.Response.Body, e.Truncated = nil, ""
		return e, readFrames(frames, e, pieces)
	}
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{At: max(e.FirstByte, sinceThen(e.Wall, harTime(m.Timers.Done))), Bytes: n}}
	}
	return e, nil
}

// readFrames reads the frames of a WebSocket: a header that says from whom a frame is, its length and when it was read,
// an empty line, and the frame as it was sent. What follows on one that cannot be read is not used.
func readFrames(text []byte, e *lab.Exchange, pieces *budget) error {
	last := e.FirstByte
	for len(text) > 0 {
		head, rest, found := bytes.Cut(text, []byte("\r\n\r\n"))
		const longest = 4096
		if !found || len(head) > longest {
			return nil
		}
		size, isDevice, at := -1, false, time.Time{}
		for line := range strings.SplitSeq(string(head), "\r\n") {
			name, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); strings.ToLower(name) {
			case "request-length", "response-length":
				isDevice = len(name) == len("request-length")
				if n, err := strconv.Atoi(value); err == nil {
					size = n
				}
			case "doneread":
				at = harTime(value)
			}
		}
		if text = rest; size < 0 { // the head of the file
			continue
		}
		if size > len(text) {
			return nil
		}
		if err := pieces.take(elementCost + int64(size)); err != nil {
			return err
		}
		last = max(last, sinceThen(e.Wall, at))
		e.Socket = append(e.Socket, lab.SocketPiece{At: last, Device: isDevice, Data: bytes.Clone(text[:size])})
		text = bytes.TrimPrefix(text[size:], []byte("\r\n"))
	}
	return nil
}
