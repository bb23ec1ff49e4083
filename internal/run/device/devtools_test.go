package device

import (
	"bufio"
	"encoding/json"
	"image"
	"os"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// speak answers the DevTools protocol as a browser with two tabs does, the second of which is shown.
func speak(t *testing.T, theirs []*os.File, found string) (asked func() []string) {
	t.Helper()
	var methods []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := bufio.NewReader(theirs[0])
		session := ""
		for {
			text, err := in.ReadBytes(0)
			if err != nil {
				return
			}
			var m struct {
				ID      int
				Method  string
				Session string `json:"sessionId"`
				Params  struct {
					Expression string
					TargetID   string `json:"targetId"`
				}
			}
			if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
				t.Errorf("the browser got %q: %v", text, err)
				return
			}
			methods = append(methods, m.Method)
			result := "{}"
			switch m.Method {
			case "Target.getTargets":
				result = `{"targetInfos":[{"targetId":"a","type":"page"},{"targetId":"w","type":"worker"},{"targetId":"b","type":"page"}]}`
			case "Target.attachToTarget":
				session = m.Params.TargetID
				result = `{"sessionId":"s` + session + `"}`
			case "Page.getFrameTree":
				result = `{"frameTree":{"frame":{"id":"f"}}}`
			case "Page.createIsolatedWorld":
				result = `{"executionContextId":7}`
			case "Runtime.evaluate":
				value := map[string]string{"a": `"hidden"`, "b": `"visible"`}[session]
				if strings.Contains(m.Params.Expression, "querySelectorAll") {
					value = found
				}
				result = `{"result":{"value":` + value + `}}`
			}
			answer, _ := json.Marshal(map[string]any{"id": m.ID, "result": json.RawMessage(result)})
			event := []byte(`{"method":"Target.attachedToTarget","params":{}}` + "\x00")
			if _, err := theirs[1].Write(append(append(event, answer...), 0)); err != nil {
				return
			}
		}
	}()
	return func() []string { <-done; return methods }
}

// TestWhere: the tab that is shown is asked in a world of its own, and is left again.
func TestWhere(t *testing.T) {
	d, theirs, err := openDevtools()
	if err != nil {
		t.Fatal(err)
	}
	asked := speak(t, theirs, `{"found":2,"shown":1,"width":640,"height":360,"x":100,"y":50,"w":20.5,"h":10,"inside":true}`)
	b := &Browser{devtools: d}
	got, err := b.Where(t.Context(), "#buy", image.Rect(0, 20, 1280, 740))
	if want := image.Rect(200, 120, 241, 140); err != nil || got != want {
		t.Errorf("Where() = %v, %v; want %v: twice as many pixels as in the page, below 20 rows", got, err, want)
	}
	if _, err := b.Open(t.Context(), "https://a.test/"); err != nil {
		t.Errorf("Open() = %v", err)
	}
	d.close()
	for _, f := range theirs {
		f.Close()
	}
	methods := asked()
	if count(methods, "Target.attachToTarget") != count(methods, "Target.detachFromTarget") || count(methods, "Page.navigate") != 1 {
		t.Errorf("the browser was asked %q; want every session left, and one navigation", methods)
	}
	if _, err := (&Browser{}).Where(t.Context(), "#buy", image.Rect(0, 0, 1, 1)); err != lab.ErrNoProtocol {
		t.Errorf("Where() of a browser without the protocol: %v", err)
	}
}

func count(list []string, word string) (n int) {
	for _, s := range list {
		if s == word {
			n++
		}
	}
	return n
}

// TestPlaceSaysWhy: what cannot be aimed at is refused with the reason.
func TestPlaceSaysWhy(t *testing.T) {
	good := place{Found: 1, Shown: 1, Width: 100, Height: 100, X: 1, Y: 1, W: 9, H: 9, Inside: true}
	for says, change := range map[string]func(*place){
		"does not understand":       func(p *place) { p.Wrong = "'##' is not a valid selector" },
		"no such element":           func(p *place) { p.Found = 0 },
		"outside of its frames (2)": func(p *place) { p.Found, p.Frames = 0, 2 },
		"is in a frame":             func(p *place) { p.Found, p.Frames, p.InFrame = 0, 2, true },
		"none of the page's 1":      func(p *place) { p.Shown = 0 },
		"scroll to it":              func(p *place) { p.Inside = false },
		"covered by div#banner":     func(p *place) { p.Covered = "div#banner" },
		"how large":                 func(p *place) { p.Width = 0 },
		"smaller than a pixel":      func(p *place) { p.X, p.W = 200, 1 },
	} {
		p := good
		change(&p)
		if r, err := p.on("#buy", image.Rect(0, 0, 100, 100)); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "#buy") {
			t.Errorf("%+v: %v, %v; want %q", p, r, err, says)
		}
	}
}

// FuzzDevtools: whatever a browser says is an answer or an error.
func FuzzDevtools(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"result\":{}}\x00"))
	f.Add([]byte("{\"id\":1,\"error\":{\"message\":\"no\"}}\x00{\"id\":2}\x00\x00"))
	f.Add([]byte("[]\x00nonsense"))
	f.Fuzz(func(t *testing.T, said []byte) {
		defer testlab.Input(t)()
		d, theirs, err := openDevtools()
		if err != nil {
			t.Fatal(err)
		}
		defer d.close()
		defer theirs[0].Close()
		go func() {
			_, _ = theirs[1].Write(said)
			_ = theirs[1].Close()
		}()
		var into map[string]any
		_ = d.do(t.Context(), "", "Browser.getVersion", nil, &into)
	})
}

func TestLaunchArguments(t *testing.T) {
	for _, c := range []struct{ first, want []string }{
		{[]string{"--kiosk", "--user-data-dir=/p", "--no-sandbox", "--remote-debugging-pipe", "http://a/"}, []string{"--user-data-dir=/p", "--no-sandbox", "u"}},
		{[]string{"--profile", "/p", "--kiosk", "http://a/"}, []string{"--profile", "/p", "u"}},
		{[]string{"--data=/p", "http://a/"}, nil},
	} {
		got, err := launchArguments(c.first, "u")
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("launchArguments(%q) = %q, %v; want %q", c.first, got, err, c.want)
		}
	}
}

func TestExtensions(t *testing.T) {
	folder := t.TempDir()
	if err := CheckExtensions(&lab.Browser{Extensions: []string{folder}}); err == nil || !strings.Contains(err.Error(), "manifest.json") {
		t.Errorf("a folder without a manifest: %v", err)
	}
	if err := os.WriteFile(folder+"/manifest.json", []byte(`{"manifest_version":3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckExtensions(&lab.Browser{Extensions: []string{folder}}); err != nil {
		t.Error(err)
	}
	args := withExtensions([]string{"--disable-extensions", "--disable-features=A", "u"}, []string{"/x", "/y"})
	want := []string{"--disable-extensions-except=/x,/y", "--load-extension=/x,/y", "--disable-features=A,DisableLoadExtensionCommandLineSwitch", "u"}
	if !slices.Equal(args, want) {
		t.Errorf("withExtensions() = %q; want %q", args, want)
	}
}
