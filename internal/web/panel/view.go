package panel

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"eidetic/internal/lab"
)

// View is how one person looks at a device for a while.
type View interface {
	// Next waits for what is new on the screen; who is slow misses what was in between.
	Next(ctx context.Context) (lab.LiveUpdate, error)
	Close()
}

// ViewHead says what a message of a view has; the bytes of its parts follow.
type ViewHead struct {
	Width   int        `json:"width" doc:"Of the picture, in pixels"`
	Height  int        `json:"height"`
	Run     bool       `json:"run,omitempty" doc:"The picture is of the film of a run, and the device's input is locked"`
	Changes []lab.Time `json:"changes,omitempty" doc:"When the screen changed since the message before, in ns of the appliance's clock, as the events of give-input; none of a film, and of a grabber that compresses its pictures"`
	Delay   int64      `json:"delay_ns,omitempty" doc:"From when the newest answered picture was taken off the screen until its answer arrived; none of a film"`
	Move    *ViewMove  `json:"move,omitempty" doc:"Copy this area within the previous picture before drawing the parts"`
	Parts   []ViewPart `json:"parts" doc:"What is drawn over the picture before, in the order of their bytes"`
}

// ViewMove is an area of the previous picture that is copied to another place in it.
type ViewMove struct {
	X      int `json:"x" doc:"Where the area is copied to"`
	Y      int `json:"y"`
	Width  int `json:"width"`
	Height int `json:"height"`
	DX     int `json:"dx,omitempty" doc:"The area is copied from x + dx"`
	DY     int `json:"dy,omitempty" doc:"The area is copied from y + dy"`
}

// ViewPart is a picture in its place.
type ViewPart struct {
	X     int    `json:"x"`
	Y     int    `json:"y"`
	Type  string `json:"type" enum:"image/png,image/jpeg" doc:"A part of few colours is exact"`
	Bytes int    `json:"bytes"`
}

// viewProblem is the text of a message of a view that has no picture now.
type viewProblem struct {
	Problem string `json:"problem"`
}

const (
	// viewWindow is how many messages may be under way to a page that has not said yet that it shows them: two keep
	// its next picture coming while it draws, and no queue grows that would show it old ones.
	viewWindow = 2
	// viewSlow is how long a message may take to arrive and be shown.
	viewSlow = 30 * time.Second
	// viewAgain is the pause after a screen could not be seen.
	viewAgain = time.Second
	// viewRead bounds a message of the page, which says only that it shows what came.
	viewRead = 64
)

// views registers the live view. Like a stream of events it is an ordinary handler.
func (p *Panel) views(s Seats) {
	name := &huma.Param{Name: "name", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}
	schema := p.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ViewHead](), true, "ViewHead")
	p.raw(p.router, p.api, &huma.Operation{
		OperationID: "view-screen", Method: http.MethodGet, Path: "/api/v1/devices/{name}/view", Summary: "A device's screen, live",
		Description: "A WebSocket (RFC 6455). Each binary message is a 32-bit number (big-endian), so many bytes of JSON (ViewHead), and the bytes " +
			"of the parts. Apply the move, draw the parts, and answer with a text message when that is shown: at most two " +
			"messages are unanswered at any time; a slow viewer skips pictures and gets the newest. A text message is JSON, " +
			"{\"problem\": …}: why there is no picture now. At most eight look at one device, seven of them with one token.",
		Tags: []string{tagDevices}, Parameters: []*huma.Param{name},
		Responses: map[string]*huma.Response{
			"101": {Description: "The WebSocket; the head of its binary messages", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}},
		},
	}, func(c echo.Context) error {
		r := c.Request()
		if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			return &Refusal{http.StatusUpgradeRequired, errors.New("this is a WebSocket: ask with Upgrade: websocket")}
		}
		view, err := s.View(deviceName(c.Param("name")), driverOf(r.Context(), "").Name)
		if err != nil {
			return err
		}
		defer view.Close()
		conn, err := websocket.Accept(c.Response(), r, nil)
		if err != nil {
			return nil // it has answered
		}
		defer conn.CloseNow()
		conn.SetReadLimit(viewRead)
		p.show(r.Context(), conn, view)
		return nil
	})
}

// show sends what a view shows, until the page goes away, is too slow, or may not look any more.
func (p *Panel) show(ctx context.Context, conn *websocket.Conn, view View) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan lab.Time, viewWindow)
	go func() {
		defer stop()
		for {
			_, _, err := conn.Read(ctx)
			if err != nil {
				return
			}
			select {
			case shown <- lab.Monotonic():
			default: // it says so of more than there was
				return
			}
		}
	}()
	go func() { // a still screen has no messages
		defer stop()
		beat := time.NewTicker(heartbeat)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			limited, cancel := context.WithTimeout(ctx, heartbeat)
			err := conn.Ping(limited)
			cancel()
			if err != nil || !p.isStill(ctx) {
				return
			}
		}
	}()
	s := sender{conn: conn, shown: shown}
	for p.isStill(ctx) {
		u, err := view.Next(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = s.send(ctx, u)
		} else if err = s.tell(ctx, err.Error()); err == nil {
			err = lab.Wait(ctx, viewAgain)
		}
		if err != nil {
			return
		}
	}
}

// sender sends the messages of a view.
type sender struct {
	conn  *websocket.Conn
	shown <-chan lab.Time // has one for each message that the page shows: when it said so
	away  []lab.Time      // when the pictures of the messages under way were taken
	delay time.Duration   // of the newest that was shown
	told  string          // the problem that was told last
}

// send sends an update, and waits until another may follow.
func (s *sender) send(ctx context.Context, u lab.LiveUpdate) error {
	for len(s.away) > 0 && len(s.shown) > 0 {
		s.took(<-s.shown)
	}
	head := ViewHead{
		Width: u.Size.X, Height: u.Size.Y, Run: u.Run, Changes: u.Changes, Delay: int64(s.delay), Parts: make([]ViewPart, len(u.Parts)),
	}
	if m := u.Move; m != nil {
		head.Move = &ViewMove{m.R.Min.X, m.R.Min.Y, m.R.Dx(), m.R.Dy(), m.DX, m.DY}
	}
	for i, part := range u.Parts {
		head.Parts[i] = ViewPart{part.Area.Min.X, part.Area.Min.Y, part.Type, len(part.Bytes)}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, viewSlow)
	defer cancel()
	w, err := s.conn.Writer(ctx, websocket.MessageBinary)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	for _, part := range u.Parts {
		if err == nil {
			_, err = w.Write(part.Bytes)
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	s.told = ""
	for s.away = append(s.away, u.Taken); len(s.away) >= viewWindow; {
		select {
		case at := <-s.shown:
			s.took(at)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// took notes when the page answered the oldest message under way.
func (s *sender) took(at lab.Time) {
	if s.delay = 0; s.away[0] > 0 {
		s.delay = at.Sub(s.away[0])
	}
	s.away = s.away[1:]
}

// tell says why there is no picture, once.
func (s *sender) tell(ctx context.Context, problem string) error {
	if problem == s.told {
		return nil
	}
	s.told = problem
	text, err := json.Marshal(viewProblem{problem})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, viewSlow)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, text)
}
