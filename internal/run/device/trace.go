package device

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"eidetic/internal/lab"
)

// MaxTraceFile bounds a browser's trace as it is kept, compressed.
const MaxTraceFile = 64 << 20

// traceLimit bounds the time in which a browser delivers its trace.
const traceLimit = 60 * time.Second

// ErrNoTrace says that a browser cannot be traced.
var ErrNoTrace = errors.New("this browser cannot be traced: use browser: chromium or firefox, without a command line of its own") // constant

// traceCategories are those of the developer tools' performance panel that tell what a thread does and for which
// script, without those that cost most: stacks, invalidations, pictures of the screen.
func traceCategories() []string {
	return []string{
		"-*", "devtools.timeline", "disabled-by-default-devtools.timeline", "v8", "v8.execute", "disabled-by-default-v8.compile", "disabled-by-default-v8.gc",
		"blink.user_timing", "loading", "__metadata",
	}
}

// traceBuffer is Chromium's buffer for events, in KB. When it is full, the browser says that it lost some.
const traceBuffer = 256 << 10

// tracedOf says how a program can be traced.
func tracedOf(p Program) string {
	switch p := p.(type) {
	case *Chromium:
		return lab.Chromium
	case *other:
		if p.whole == nil {
			return p.what.Family()
		}
	}
	return ""
}

// BirthTraced starts a fresh browser at url that can trace itself.
func (v *Virtual) BirthTraced(url string) (*Browser, error) {
	traced := *v
	switch tracedOf(v.Browser) {
	case lab.Chromium:
		traced.Protocol = true
	case lab.Firefox:
		traced.profiled = true
	default:
		return nil, ErrNoTrace
	}
	return traced.Birth(url)
}

// profileFolder is where Firefox writes its profile, in its home.
const profileFolder = "profiles"

// profilerEnvironment makes Firefox sample itself from its start on: threads of pages and of what draws them, each
// millisecond. The buffer forgets its oldest samples; it holds some minutes. On SIGUSR2 the profiler stops and writes
// what it has.
func profilerEnvironment(home string) []string {
	return []string{
		"MOZ_PROFILER_STARTUP=1", "MOZ_PROFILER_STARTUP_INTERVAL=1", "MOZ_PROFILER_STARTUP_ENTRIES=8000000", "MOZ_PROFILER_STARTUP_FEATURES=js,cpu,leaf",
		"MOZ_PROFILER_STARTUP_FILTERS=GeckoMain,Compositor,Renderer,WRWorker,StyleThread,ImgDecoder,ImageIO,DOM Worker,SwComposite",
		"MOZ_UPLOAD_DIR=" + filepath.Join(home, profileFolder),
	}
}

// Trace begins a trace, of a browser that was born traced. The function that it returns ends it, and writes it to a
// file as gzip.
func (b *Browser) Trace(ctx context.Context) (end func(ctx context.Context, path string) (lab.BrowserTrace, error), err error) {
	switch {
	case b.started.options.profiled:
		return b.endProfile, nil
	case b.devtools == nil:
		return nil, ErrNoTrace
	}
	t := lab.BrowserTrace{Browser: "Chromium"}
	err = b.devtools.do(ctx, "", "Tracing.start", map[string]any{
		"transferMode": "ReturnAsStream", "streamFormat": "json", "streamCompression": "gzip",
		"traceConfig": map[string]any{"recordMode": "recordUntilFull", "traceBufferSizeInKb": traceBuffer, "includedCategories": traceCategories()},
	}, nil)
	if err == nil {
		err = b.ping(ctx, &t)
	}
	if err != nil {
		return nil, fmt.Errorf("beginning the browser's trace: %w", err)
	}
	return func(ctx context.Context, path string) (lab.BrowserTrace, error) {
		ctx, cancel := context.WithTimeout(ctx, traceLimit)
		defer cancel()
		err := cmp.Or(b.ping(ctx, &t), b.fetchTrace(ctx, path))
		if err != nil {
			err = fmt.Errorf("the browser's trace: %w", err)
		}
		return t, err
	}, nil
}

// ping has the browser note an instant in its trace, between two of the box's.
func (b *Browser) ping(ctx context.Context, t *lab.BrowserTrace) error {
	p := lab.TracePing{Name: fmt.Sprintf("eidetic-%d", len(t.Pings)+1), Earliest: lab.Monotonic()}
	err := b.devtools.do(ctx, "", "Tracing.recordClockSyncMarker", map[string]any{"syncId": p.Name}, nil)
	p.Latest = lab.Monotonic()
	t.Pings = append(t.Pings, p)
	return err
}

// traceEnd is what Chromium tells when its trace is whole.
type traceEnd struct {
	Lost   bool   `json:"dataLossOccurred"`
	Stream string `json:"stream"`
}

// fetchTrace ends the trace and writes it to a file.
func (b *Browser) fetchTrace(ctx context.Context, path string) error {
	d := b.devtools
	if err := d.do(ctx, "", "Tracing.end", nil, nil); err != nil {
		return err
	}
	var end traceEnd
	select {
	case end = <-d.traced:
	case <-b.Done():
		return errors.New("the browser ended before its trace was whole")
	case <-ctx.Done():
		return fmt.Errorf("the browser did not deliver it within %v: %w", traceLimit, ctx.Err())
	}
	if end.Stream == "" {
		return errors.New("the browser delivered none")
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.copyStream(ctx, end.Stream, f, MaxTraceFile); err != nil {
		return err
	}
	if end.Lost {
		return errors.New("the browser lost events: its buffer was full; trace a shorter load")
	}
	return f.Close()
}

// streamPart is how many bytes of a stream are asked for at a time; as Base64 they fit maxMessage.
const streamPart = 1 << 20

// copyStream copies a stream of the browser's.
func (d *devtools) copyStream(ctx context.Context, handle string, to io.Writer, most int64) error {
	for written := int64(0); ; {
		var part struct {
			Base64 bool   `json:"base64Encoded"`
			Data   string `json:"data"`
			EOF    bool   `json:"eof"`
		}
		if err := d.do(ctx, "", "IO.read", map[string]any{"handle": handle, "size": streamPart}, &part); err != nil {
			return err
		}
		data := []byte(part.Data)
		if part.Base64 {
			var err error
			if data, err = base64.StdEncoding.DecodeString(part.Data); err != nil {
				return fmt.Errorf("IO.read: %w", err)
			}
		}
		if written += int64(len(data)); written > most {
			return fmt.Errorf("it is larger than %d MB: trace a shorter load", most>>20)
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
		if part.EOF {
			return d.do(ctx, "", "IO.close", map[string]any{"handle": handle}, nil)
		}
	}
}

// endProfile has Firefox write its profile, with those of its processes.
func (b *Browser) endProfile(ctx context.Context, path string) (lab.BrowserTrace, error) {
	t := lab.BrowserTrace{Browser: "Firefox"}
	ctx, cancel := context.WithTimeout(ctx, traceLimit)
	defer cancel()
	if err := syscall.Kill(b.process.cmd.Process.Pid, syscall.SIGUSR2); err != nil {
		return t, fmt.Errorf("ending the browser's profile: %w", err)
	}
	return t, b.keepProfile(ctx, path)
}

// maxProfile bounds a profile as Firefox writes it.
const maxProfile = 4 * MaxTraceFile

// profileSettled is for how long a whole profile that does not say that all processes have told theirs must stay as it
// is.
const profileSettled = 5 * time.Second

// keepProfile waits until the profile is whole and writes it to a file as gzip. Firefox writes its file twice, first
// with the processes that it has heard of so far; so what counts is what was read, not what the file was a moment
// before.
func (b *Browser) keepProfile(ctx context.Context, path string) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var size int64
	var changed time.Time
	for {
		name, now, err := b.profile()
		if err != nil {
			return err
		}
		if now != size {
			size, changed = now, time.Now()
		} else if size > 0 {
			seen, err := b.copyProfile(name, path)
			if err != nil || seen.gathered || seen.whole && time.Since(changed) > profileSettled {
				return err
			}
		}
		select {
		case <-b.Done():
			return errors.New("the browser ended before its profile was whole")
		case <-ctx.Done():
			return fmt.Errorf("the browser did not write its profile within %v: %w", traceLimit, ctx.Err())
		case <-ticker.C:
		}
	}
}

// profile tells the profile's name in the profiles' folder, and its size; 0 as long as there is none.
func (b *Browser) profile() (name string, size int64, err error) {
	found, err := filepath.Glob(filepath.Join(b.home, profileFolder, "profile_*.json"))
	if err != nil || len(found) == 0 {
		return "", 0, err
	}
	info, err := os.Lstat(found[0])
	if err != nil {
		return "", 0, err
	}
	return filepath.Base(found[0]), info.Size(), nil
}

// copyProfile writes a profile to a file as gzip, as far as it is there, and says what it saw of it.
func (b *Browser) copyProfile(name, path string) (profileEnd, error) {
	var seen profileEnd
	in, err := b.openProfile(name)
	if err != nil {
		return seen, err
	}
	defer in.Close()
	f, err := os.Create(path)
	if err != nil {
		return seen, err
	}
	defer f.Close()
	before, err := in.Stat()
	if err != nil {
		return seen, err
	}
	z := gzip.NewWriter(f)
	n, err := io.Copy(io.MultiWriter(z, &seen), io.LimitReader(in, maxProfile+1))
	after, statErr := in.Stat()
	if err = cmp.Or(err, statErr, z.Close(), f.Close()); err != nil {
		return profileEnd{}, err
	}
	if n > maxProfile {
		return profileEnd{}, fmt.Errorf("the browser's profile is larger than %d MB: trace a shorter load", int64(maxProfile)>>20)
	}
	if after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		return profileEnd{}, nil // it may begin with one content and end with another
	}
	return seen, nil
}

// openProfile opens a profile. Its folder is the browser's, which may have put anything there: a link that leads out of
// its home, or a pipe that nobody writes to, is an error.
func (b *Browser) openProfile(name string) (*os.File, error) {
	home, err := os.OpenRoot(b.home)
	if err != nil {
		return nil, fmt.Errorf("the browser's profile: %w", err)
	}
	defer home.Close()
	f, err := home.OpenFile(filepath.Join(profileFolder, name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("the browser's profile: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("the browser's profile is no file"), err, f.Close())
	}
	return f, nil
}

// gatheredKey is the member that Firefox adds to a profile's object when all its processes have told theirs.
const gatheredKey = "profileGatheringLog"

// profileEnd finds the end of the JSON object that is written to it, without reading what is in it.
type profileEnd struct {
	// whole says that the object's end was seen; gathered, that the object has the member gatheredKey besides.
	whole, gathered bool

	named         bool // the member was seen
	depth         int
	text, escaped bool
	key           []byte // of the text that is being read, if it stands in the object itself; no longer than gatheredKey by more than one
}

func (p *profileEnd) Write(content []byte) (int, error) {
	for _, b := range content {
		switch {
		case p.whole:
			return len(content), nil
		case p.escaped:
			p.escaped = false
		case p.text && b == '\\':
			p.escaped = true
		case b == '"':
			if p.text = !p.text; p.text {
				p.key = p.key[:0]
			} else if p.depth == 1 && string(p.key) == gatheredKey {
				p.named = true
			}
		case p.text:
			if p.depth == 1 && len(p.key) <= len(gatheredKey) {
				p.key = append(p.key, b)
			}
		case b == '{' || b == '[':
			p.depth++
		case b == '}' || b == ']':
			if p.depth--; p.depth == 0 {
				p.whole, p.gathered = true, p.named
			}
		}
	}
	return len(content), nil
}

// completed reads the event that says that a trace is whole.
func completed(params json.RawMessage) (end traceEnd, ok bool) {
	return end, json.Unmarshal(params, &end) == nil && end.Stream != ""
}
