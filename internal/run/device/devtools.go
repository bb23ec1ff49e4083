package device

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"os"
	"time"

	"eidetic/internal/lab"
)

// protocolFlags make Chromium listen on descriptors 3 and 4, and leave pages without a sign of it: a
// page's navigator.webdriver stays false.
func protocolFlags() []string {
	return []string{"--remote-debugging-pipe", "--disable-blink-features=AutomationControlled"}
}

// maxMessage bounds a message of the protocol.
const maxMessage = 4 << 20

// protocolLimit is how long the browser may take to answer.
const protocolLimit = 10 * time.Second

// devtools speaks the Chrome DevTools Protocol through pipes: JSON messages, each ended by a NUL. It
// attaches to a page for one question at a time and detaches again, so that nothing watches the page
// while something is measured.
type devtools struct {
	out     *os.File
	in      *os.File
	answers chan answer
	traced  chan traceEnd // has the end of a trace
	last    int
}

type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"` // of an event
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	err error
}

// openDevtools makes the pipes; theirs become the browser's descriptors 3 and 4.
func openDevtools() (d *devtools, theirs []*os.File, err error) {
	read, out, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("pipe of the debugging protocol: %w", err)
	}
	in, write, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pipe of the debugging protocol: %w", err), read.Close(), out.Close())
	}
	d = &devtools{out: out, in: in, answers: make(chan answer, 16), traced: make(chan traceEnd, 1)}
	go d.read()
	return d, []*os.File{read, write}, nil
}

// read passes the answers on until the browser ends; of events, only the end of a trace is told.
func (d *devtools) read() {
	lines := bufio.NewScanner(d.in)
	lines.Buffer(make([]byte, 64<<10), maxMessage)
	lines.Split(func(data []byte, end bool) (int, []byte, error) {
		for i, b := range data {
			if b == 0 {
				return i + 1, data[:i], nil
			}
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a = answer{err: fmt.Errorf("the browser's debugging protocol: %w", err)}
		} else if a.ID == 0 {
			if end, ok := completed(a.Params); ok && a.Method == "Tracing.tracingComplete" {
				select {
				case d.traced <- end:
				default: // one trace at a time is waited for
				}
			}
			continue
		}
		select {
		case d.answers <- a:
		default: // nobody waits for so many
		}
	}
	close(d.answers)
}

func (d *devtools) close() {
	if d != nil {
		_, _ = d.out.Close(), d.in.Close() // the browser has ended, or will be
	}
}

// send sends a command and returns its number.
func (d *devtools) send(session, method string, params any) (int, error) {
	d.last++
	text, err := json.Marshal(struct {
		ID      int    `json:"id"`
		Session string `json:"sessionId,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{d.last, session, method, params})
	if err != nil {
		return 0, err
	}
	if err := d.out.SetWriteDeadline(time.Now().Add(protocolLimit)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	_, err = d.out.Write(append(text, 0))
	return d.last, err
}

// await waits for the answer to a command.
func (d *devtools) await(ctx context.Context, id int, method string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, protocolLimit)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the browser did not answer %s: %w", method, ctx.Err())
		case a, open := <-d.answers:
			switch {
			case !open:
				return fmt.Errorf("%s: the browser has closed its debugging protocol", method)
			case a.err != nil:
				return a.err
			case a.ID != id:
				continue // of a command that nobody waits for any more
			case a.Error != nil:
				return fmt.Errorf("%s: %s", method, a.Error.Message)
			case into == nil:
				return nil
			}
			return json.Unmarshal(a.Result, into)
		}
	}
}

func (d *devtools) do(ctx context.Context, session, method string, params, into any) error {
	id, err := d.send(session, method, params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return d.await(ctx, id, method, into)
}

// onPage calls f with a session of the page that is shown.
func (d *devtools) onPage(ctx context.Context, f func(session string) error) (err error) {
	var targets struct {
		Infos []struct {
			ID   string `json:"targetId"`
			Type string `json:"type"`
		} `json:"targetInfos"`
	}
	if err := d.do(ctx, "", "Target.getTargets", nil, &targets); err != nil {
		return err
	}
	for _, one := range targets.Infos {
		if one.Type != "page" {
			continue
		}
		var attached struct {
			Session string `json:"sessionId"`
		}
		if err := d.do(ctx, "", "Target.attachToTarget", map[string]any{"targetId": one.ID, "flatten": true}, &attached); err != nil {
			return err
		}
		detach := func() error {
			return d.do(ctx, "", "Target.detachFromTarget", map[string]any{"sessionId": attached.Session}, nil)
		}
		var state string
		err := d.evaluate(ctx, attached.Session, "document.visibilityState", &state)
		if err != nil || state != "visible" { // of several tabs one is
			if err := errors.Join(err, detach()); err != nil {
				return err
			}
			continue
		}
		return errors.Join(f(attached.Session), detach())
	}
	return errors.New("the browser shows no page")
}

// evaluate evaluates an expression in a world of its own: no script of the page can change what it sees.
func (d *devtools) evaluate(ctx context.Context, session, expression string, into any) error {
	var tree struct {
		FrameTree struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		} `json:"frameTree"`
	}
	if err := d.do(ctx, session, "Page.getFrameTree", nil, &tree); err != nil {
		return err
	}
	var world struct {
		ID int `json:"executionContextId"`
	}
	if err := d.do(ctx, session, "Page.createIsolatedWorld", map[string]any{"frameId": tree.FrameTree.Frame.ID}, &world); err != nil {
		return err
	}
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := d.do(ctx, session, "Runtime.evaluate", map[string]any{"expression": expression, "contextId": world.ID, "returnByValue": true}, &out)
	if err != nil {
		return err
	}
	if out.Exception != nil {
		return errors.New(out.Exception.Text)
	}
	return json.Unmarshal(out.Result.Value, into)
}

// findScript looks for the first visible element of a selector, in the document and then in its open shadow trees, and
// for what covers its middle. Of frames it tells how many there are, and whether one of the same origin has the element.
const findScript = `(selector => {
  const trees = root => [root, ...[...root.querySelectorAll("*")].flatMap(e => e.shadowRoot ? trees(e.shadowRoot) : [])];
  const find = root => trees(root).flatMap(tree => [...tree.querySelectorAll(selector)]);
  const around = (outer, e) => { while (e && e !== outer) e = e.parentNode || e.host; return Boolean(e); };
  let all;
  try {
    all = [...document.querySelectorAll(selector)];
    if (!all.length) all = find(document); // which takes longer on a large page
  } catch (e) { return {wrong: String(e.message)}; }
  if (!all.length) {
    const frames = trees(document).flatMap(tree => [...tree.querySelectorAll("iframe, frame")]);
    return {found: 0, frames: frames.length, inFrame: frames.some(f => f.contentDocument && find(f.contentDocument).length > 0)};
  }
  const shown = all.map(e => [e, e.getBoundingClientRect()]).filter(([e, r]) => r.width > 0 && r.height > 0 && e.checkVisibility({visibilityProperty: true}));
  const w = innerWidth, h = innerHeight, out = {found: all.length, shown: shown.length, width: w, height: h};
  if (!shown.length) return out;
  const [e, r] = shown[0];
  out.x = Math.max(0, r.left); out.y = Math.max(0, r.top);
  out.w = Math.min(w, r.right) - out.x; out.h = Math.min(h, r.bottom) - out.y;
  out.inside = out.w > 0 && out.h > 0;
  if (!out.inside) return out;
  let hit = null;
  for (let tree = document; tree;) {
    const inner = tree.elementFromPoint(out.x + out.w / 2, out.y + out.h / 2);
    tree = inner && inner !== hit && inner.shadowRoot;
    hit = inner || hit;
  }
  if (hit && !around(e, hit) && !around(hit, e)) out.covered = hit.tagName.toLowerCase() + (hit.id ? "#" + hit.id : "");
  return out;
})`

// place is what findScript answers.
type place struct {
	Wrong         string
	Found, Shown  int
	Width, Height float64
	X, Y, W, H    float64
	Inside        bool
	Covered       string
	Frames        int
	InFrame       bool
}

// Where returns where the first visible element of a CSS selector is, on a screen of which the page
// fills content. The browser's protocol tells it; no input comes from there.
func (b *Browser) Where(ctx context.Context, selector string, content image.Rectangle) (image.Rectangle, error) {
	if b.devtools == nil {
		return image.Rectangle{}, lab.ErrNoProtocol
	}
	quoted, err := json.Marshal(selector)
	if err != nil {
		return image.Rectangle{}, err
	}
	var at place
	err = b.devtools.onPage(ctx, func(session string) error {
		return b.devtools.evaluate(ctx, session, findScript+"("+string(quoted)+")", &at)
	})
	if err != nil {
		return image.Rectangle{}, fmt.Errorf("css %s: %w", selector, err)
	}
	return at.on(selector, content)
}

// on converts a place in the page to one on the screen, or says why there is none to aim at.
func (p place) on(selector string, content image.Rectangle) (image.Rectangle, error) {
	problem := ""
	switch {
	case p.Wrong != "":
		problem = "the browser does not understand the selector: " + p.Wrong
	case p.InFrame:
		problem = "the element is in a frame of the page, where css does not look: aim at a picture or at a share of the content area"
	case p.Found == 0 && p.Frames > 0:
		problem = fmt.Sprintf("the page has no such element outside of its frames (%d), in which css does not look", p.Frames)
	case p.Found == 0:
		problem = "the page has no such element"
	case p.Shown == 0:
		problem = fmt.Sprintf("none of the page's %d such elements is visible", p.Found)
	case !p.Inside:
		problem = "the element is outside the visible part of the page: scroll to it first, as a person does"
	case p.Covered != "":
		problem = "the element is covered by " + p.Covered + ": a click would hit that"
	case !(p.Width >= 1 && p.Height >= 1):
		problem = "the browser does not say how large its page is"
	}
	if problem != "" {
		return image.Rectangle{}, fmt.Errorf("css %s: %s", selector, problem)
	}
	sx, sy := float64(content.Dx())/p.Width, float64(content.Dy())/p.Height
	r := image.Rect(int(p.X*sx), int(p.Y*sy), int((p.X+p.W)*sx+0.5), int((p.Y+p.H)*sy+0.5)).Add(content.Min).Intersect(content)
	if r.Empty() {
		return r, fmt.Errorf("css %s: the element is smaller than a pixel", selector)
	}
	return r, nil
}

// Open makes the page that is shown go to a URL. The event's interval ends when the browser has proved
// that it has read the command, by its answer to the next one.
func (b *Browser) Open(ctx context.Context, url string) (lab.Event, error) {
	if b.devtools == nil {
		return lab.Event{}, lab.ErrCannotOpen
	}
	e := lab.Event{Name: "open", Detail: url + ", by the debugging protocol"}
	err := b.devtools.onPage(ctx, func(session string) error {
		e.Earliest = lab.Monotonic()
		if _, err := b.devtools.send(session, "Page.navigate", map[string]any{"url": url, "transitionType": "typed"}); err != nil {
			return err
		}
		err := b.devtools.do(ctx, "", "Browser.getVersion", nil, nil)
		e.Latest = lab.Monotonic()
		return err
	})
	if err != nil {
		return e, fmt.Errorf("open %s: %w", url, err)
	}
	return e, nil
}
