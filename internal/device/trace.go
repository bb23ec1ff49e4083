package device

import (
	"bufio"
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

// traceCategories are those of the developer tools' performance panel that tell what a thread does and for which script, without
// those that cost most: stacks, invalidations, pictures of the screen.
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

// profilerEnvironment makes Firefox sample itself from its start on: threads of pages and of what draws them, each millisecond. The
// buffer forgets its oldest samples; it holds some minutes. On SIGUSR2 the profiler stops and writes what it has.
func profilerEnvironment(home string) []string {
	return []string{
		"MOZ_PROFILER_STARTUP=1", "MOZ_PROFILER_STARTUP_INTERVAL=1", "MOZ_PROFILER_STARTUP_ENTRIES=8000000", "MOZ_PROFILER_STARTUP_FEATURES=js,cpu,leaf",
		"MOZ_PROFILER_STARTUP_FILTERS=GeckoMain,Compositor,Renderer,WRWorker,StyleThread,ImgDecoder,ImageIO,DOM Worker,SwComposite",
		"MOZ_UPLOAD_DIR=" + filepath.Join(home, profileFolder),
	}
}

// Trace begins a trace, of a browser that was born traced. The function that it returns ends it, and writes it to a file as gzip.
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
	name, err := b.awaitProfile(ctx)
	if err != nil {
		return t, err
	}
	in, err := b.openProfile(name)
	if err != nil {
		return t, err
	}
	defer in.Close()
	f, err := os.Create(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	const most = 4 * MaxTraceFile
	z := gzip.NewWriter(f)
	n, err := io.Copy(z, io.LimitReader(in, most+1))
	if err = cmp.Or(err, z.Close(), f.Close()); err != nil {
		return t, err
	}
	if n > most {
		return t, fmt.Errorf("the browser's profile is larger than %d MB: trace a shorter load", most>>20)
	}
	return t, nil
}

// profileStill is for how long a profile's file has had its size when it is looked at whether it is whole.
const profileStill = 2 * time.Second

// openProfile opens a profile. Its folder is the browser's, which may have put anything there: a link that leads out of its home,
// or a pipe that nobody writes to, is an error.
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

// isWhole says whether a profile holds a JSON object to its end, without reading what is in it.
func (b *Browser) isWhole(name string) (bool, error) {
	f, err := b.openProfile(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(io.LimitReader(f, 4*MaxTraceFile), 1<<20)
	depth, text, escaped := 0, false, false
	for {
		b, err := in.ReadByte()
		if err != nil {
			return false, nil // it ends before the object does; or it is too large, and goes on without end
		}
		switch {
		case escaped:
			escaped = false
		case text && b == '\\':
			escaped = true
		case b == '"':
			text = !text
		case text:
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			if depth--; depth == 0 {
				return true, nil
			}
		}
	}
}

// awaitProfile waits until the profile is written, and returns its name in the profiles' folder.
func (b *Browser) awaitProfile(ctx context.Context) (name string, err error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	size, since := int64(0), time.Now()
	for {
		found, err := filepath.Glob(filepath.Join(b.home, profileFolder, "profile_*.json"))
		if err != nil {
			return "", err
		}
		if len(found) > 0 {
			info, err := os.Lstat(found[0])
			if err != nil {
				return "", err
			}
			if info.Size() != size || size == 0 {
				size, since = info.Size(), time.Now()
			} else if time.Since(since) > profileStill {
				since = time.Now()
				name := filepath.Base(found[0])
				if whole, err := b.isWhole(name); err != nil || whole {
					return name, err
				}
			}
		}
		select {
		case <-b.Done():
			return "", errors.New("the browser ended before its profile was whole")
		case <-ctx.Done():
			return "", fmt.Errorf("the browser did not write its profile within %v: %w", traceLimit, ctx.Err())
		case <-ticker.C:
		}
	}
}

// completed reads the event that says that a trace is whole.
func completed(params json.RawMessage) (end traceEnd, ok bool) {
	return end, json.Unmarshal(params, &end) == nil && end.Stream != ""
}
