package reporttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"

	"eidetic/internal/rigs/testlab"
)

// Browser is a headless Chromium with one page. It logs the page's errors and its
// requests.
type Browser struct {
	Context context.Context

	mu       sync.Mutex
	problems []string
	requests []string
}

// Browsers is a Chromium that the tests of a package use one after another: starting it takes longer than most of them.
type Browsers struct {
	mu   sync.Mutex
	page context.Context      // the first, which no test has
	stop []context.CancelFunc // in the order of their making
}

// New returns a page that no other test has, with cookies and storage of its own, until the test ends or five minutes
// are over.
func (b *Browsers) New(t testing.TB) *Browser {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.page == nil {
		page, stop := start(context.Background(), t)
		if _, err := chromedp.Run(page, chromedp.Evaluate[int]("1")); err != nil {
			t.Fatalf("start Chromium: %v", err)
		}
		b.page, b.stop = page, stop
	}
	page, end := chromedp.NewContext(b.page, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	limited, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	context.AfterFunc(limited, end)
	return hearing(page, t)
}

// End ends the browser. TestMain calls it when the tests have run.
func (b *Browsers) End() {
	for _, stop := range slices.Backward(b.stop) {
		stop()
	}
}

// start starts a Chromium with one page.
func start(ctx context.Context, t testing.TB) (page context.Context, stop []context.CancelFunc) {
	t.Helper()
	path := testlab.NeedProgram(t, "chromium", "google-chrome")
	ctx, end := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Minute),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("mute-audio", true))...)
	page, close := chromedp.NewContext(ctx)
	return page, []context.CancelFunc{end, close}
}

// NewBrowser starts a Chromium that ends with the test, or after five minutes.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(stop)
	page, stops := start(ctx, t)
	for _, stop := range stops {
		t.Cleanup(stop)
	}
	return hearing(page, t)
}

// hearing returns a page whose errors and requests are kept.
func hearing(ctx context.Context, t testing.TB) *Browser {
	t.Helper()
	b := &Browser{Context: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	for _, enable := range []func() error{
		func() error { _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
	} {
		if err := enable(); err != nil {
			t.Fatalf("start Chromium: %v", err)
		}
	}
	return b
}

func (b *Browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.problems = append(b.problems, text)
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprintf("console: %v", e.Type))
	case *log.EventEntryAdded:
		b.problems = append(b.problems, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// Problems returns the exceptions, console messages and log entries of the page so far.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.problems...)
}

// Foreign returns the requests so far whose URL begins with none of the prefixes.
func (b *Browser) Foreign(prefixes ...string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
next:
	for _, url := range b.requests {
		for _, p := range prefixes {
			if strings.HasPrefix(url, p) {
				continue next
			}
		}
		out = append(out, url)
	}
	return out
}

// View sets the window's size and the colour scheme: "light", "dark", or "forced" for a few colours of the system's.
func (b *Browser) View(width, height int64, scheme string) error {
	if err := chromedp.Do(b.Context, chromedp.EmulateViewport(width, height)); err != nil {
		return err
	}
	colours, contrast := scheme, "none"
	if scheme == "forced" {
		colours, contrast = "light", "active"
	}
	_, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}, {Name: "forced-colors", Value: contrast}},
	})
	return err
}

// TakeAny has the browser take any certificate, as one that a box has made for itself.
func (b *Browser) TakeAny() error {
	_, err := chromedp.Call(b.Context, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true})
	return err
}

// Open navigates and waits for the load event.
func (b *Browser) Open(url string) error {
	return chromedp.Do(b.Context, chromedp.Navigate(url))
}

// Eval evaluates a script, waits for its promise and decodes its value.
func Eval[T any](b *Browser, script string) (T, error) {
	return chromedp.Run(b.Context, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// Shot returns a screenshot of the window, as PNG.
func (b *Browser) Shot() ([]byte, error) {
	return chromedp.Run(b.Context, chromedp.CaptureScreenshot())
}
