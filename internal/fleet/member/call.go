package member

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"eidetic/internal/base/bounded"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/pin"
)

// Client calls a head. It trusts the certificate with the pinned fingerprint and no other, whoever vouches for it, and
// shows the box's own.
type Client struct {
	client *http.Client
	base   string // https://HOST:PORT/fleet/v1
	limit  time.Duration
}

const (
	// maxAnswer bounds an answer, and maxAssignment one with a plan, which may hold some pictures.
	maxAnswer, maxAssignment = 1 << 20, 16 << 20
	// maxProblem bounds what an error quotes of an answer.
	maxProblem = 300
)

// errLost says that another box has the part now, or that it has ended: what this box measured of it is its own.
var errLost = errors.New("the lease of the part is lost") // constant

// statusError is an answer that is no success.
type statusError struct {
	status  int
	detail  string
	missing []string // digests of files that the head wants first
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the head answers %d %s: %s", e.status, http.StatusText(e.status), e.detail)
}

// isFinal says whether the same call would get the same answer again.
func isFinal(err error) bool {
	var s *statusError
	return errors.Is(err, errLost) || errors.As(err, &s) && s.status >= 400 && s.status < 500 && s.status != http.StatusRequestTimeout &&
		s.status != http.StatusTooManyRequests && s.status != http.StatusUnauthorized && s.status != http.StatusForbidden
}

// Dial returns a client of the head that the box whose folder DATA/fleet is dir belongs to; nothing is sent yet. A call
// may take so long as limit.
func Dial(dir string, id Identity, limit time.Duration) (*Client, error) {
	cert, err := pin.LoadBox(dir)
	if err != nil {
		return nil, fmt.Errorf("%w; leave the fleet and join it again", err)
	}
	dialer := &net.Dialer{Timeout: limit, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: limit, Interval: limit / 3, Count: 3}}
	transport := &http.Transport{
		DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, ServerName: fleet.ServerName, Certificates: []tls.Certificate{*cert},
			InsecureSkipVerify: true, // VerifyConnection does it
			VerifyConnection: func(s tls.ConnectionState) error {
				if len(s.PeerCertificates) == 0 || pin.Of(s.PeerCertificates[0]) != id.Pin {
					return errors.New("the head shows another certificate than that of the join link: it was set up anew, or somebody stands between; ask for a new link")
				}
				return nil
			},
		},
		TLSHandshakeTimeout: limit, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4, MaxResponseHeaderBytes: 64 << 10,
		// One connection a call (HTTP/1.1): a network that swallows packets stalls the calls of the moment, and no
		// later one.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{client, "https://" + id.Head + "/fleet/v1", limit}, nil
}

// Close ends connections that nobody uses; calls that go on are not ended.
func (c *Client) Close() { c.client.CloseIdleConnections() }

// do makes one call with a JSON body, and decodes its answer into out; nil leaves it unread. Unknown fields are
// ignored, so that a newer head may say more.
func (c *Client) do(ctx context.Context, method, path, token string, body, out any) error {
	_, err := c.ask(ctx, c.limit, method, path, token, body, out, maxAnswer)
	return err
}

func (c *Client) ask(
	ctx context.Context, within time.Duration, method, path, token string, body, out any, limit int64,
) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set(fleet.LeaseHeader, token)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, unreachable(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return res.StatusCode, problemOf(res)
	}
	if out == nil || res.StatusCode == http.StatusNoContent {
		return res.StatusCode, nil
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return 0, unreachable(err)
	}
	if int64(len(content)) > limit {
		return 0, fmt.Errorf("the head's answer has more than %d bytes", limit)
	}
	if err := bounded.JSON(content, out); err != nil {
		return 0, fmt.Errorf("the head's answer cannot be read: %w", err)
	}
	return res.StatusCode, nil
}

// unreachable takes the address out of an error of net/http: the panel shows the head's beside it.
func unreachable(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("the head cannot be reached: %w", err)
}

// problemOf reads an answer that is no success (RFC 9457).
func problemOf(res *http.Response) error {
	var p struct {
		Type    string   `json:"type"`
		Title   string   `json:"title"`
		Detail  string   `json:"detail"`
		Missing []string `json:"missing"`
	}
	content, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // what there is of it is all that an error can tell
	_ = json.Unmarshal(content, &p)                               // it may come from a proxy, and be of any kind
	if res.StatusCode == http.StatusConflict && p.Type == fleet.LostProblem || res.StatusCode == http.StatusGone {
		return errLost
	}
	detail := p.Detail
	if detail == "" {
		detail = p.Title
	}
	return &statusError{res.StatusCode, clip(detail, maxProblem), p.Missing}
}

func clip(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}

// join asks the head to take the box, and returns the box's ID.
func (c *Client) join(ctx context.Context, code, name string, offer fleet.Offer) (id string, err error) {
	var out struct {
		ID string `json:"id"`
	}
	err = c.do(ctx, http.MethodPost, "/join", "", map[string]any{"code": code, "name": name, "offer": offer}, &out)
	var s *statusError
	switch {
	case errors.As(err, &s) && s.status == http.StatusForbidden:
		return "", errors.New("the head refuses the code: it was used, is too old, or was copied wrong; ask for a new link")
	case errors.As(err, &s) && s.status == http.StatusConflict:
		return "", fmt.Errorf("there is a box %s in the fleet already: choose another name (--name)", name)
	case err != nil:
		return "", err
	case out.ID == "" || len(out.ID) > maxProblem:
		return "", errors.New("the head gave the box no ID")
	}
	return out.ID, nil
}

// Told is what the head answers to a description.
type Told struct {
	Wanted []fleet.Wanted `json:"wanted"`
	Health string         `json:"health"`
	Reason string         `json:"reason"`
	Update *fleet.Update  `json:"update"` // that the box is to install; nil for none. See checked
}

// Describe tells the head what the box is.
func (c *Client) Describe(ctx context.Context, o fleet.Offer) (t Told, err error) {
	err = c.do(ctx, http.MethodPut, "/offer", "", o, &t)
	t.Health, t.Reason = clip(t.Health, maxProblem), clip(t.Reason, maxProblem)
	return t, err
}

// Claim asks for a part for one of the free devices; the head may keep the call open for so long as wait. ok says
// whether there is one, or news.
func (c *Client) Claim(ctx context.Context, request string, free []string, wait time.Duration) (a fleet.Assignment, ok bool, err error) {
	body := map[string]any{"request": request, "free": free, "wait_s": int(wait.Seconds())}
	status, err := c.ask(ctx, c.limit+wait, http.MethodPost, "/claims", "", body, &a, maxAssignment)
	return a, err == nil && status != http.StatusNoContent, err
}

func partPath(part, what string) string { return "/parts/" + url.PathEscape(part) + "/" + what }

// Renew makes the lease last from now, and says how far the box is.
func (c *Client) Renew(ctx context.Context, part, token string, p fleet.Progress) (r fleet.Renewal, err error) {
	err = c.do(ctx, http.MethodPut, partPath(part, "lease"), token, p, &r)
	return r, err
}

// hold lists files of whole trials before the end, and returns the digests of those whose content is missing.
func (c *Client) hold(ctx context.Context, part, token string, files []fleet.File) ([]string, error) {
	var out struct {
		Missing []string `json:"missing"`
	}
	err := c.do(ctx, http.MethodPut, partPath(part, "files"), token, map[string]any{"files": files}, &out)
	return out.Missing, err
}

// End says how the part ended, and returns the digests of files whose content must come first.
func (c *Client) End(ctx context.Context, part, token string, o fleet.Outcome) (missing []string, err error) {
	err = c.do(ctx, http.MethodPost, partPath(part, "end"), token, o, nil)
	var s *statusError
	if errors.As(err, &s) && s.status == http.StatusUnprocessableEntity && len(s.missing) > 0 {
		return s.missing, nil
	}
	return nil, err
}

func (c *Client) giveBack(ctx context.Context, part, token, reason string) error {
	return c.do(ctx, http.MethodPost, partPath(part, "return"), token, map[string]string{"reason": reason}, nil)
}
