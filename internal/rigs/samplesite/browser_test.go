package samplesite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// visitLog is what a browser reports of one load.
type visitLog struct {
	mu         sync.Mutex
	urls       []string
	byID       map[network.RequestID]string
	bytes      float64 // encoded body and header bytes
	complaints []string
}

func (v *visitLog) event(ev any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, "data:") {
			v.urls = append(v.urls, e.Request.Method+" "+e.Request.URL)
			v.byID[e.RequestID] = e.Request.URL
		}
	case *network.EventLoadingFinished:
		v.bytes += e.EncodedDataLength
	case *network.EventLoadingFailed:
		v.complaints = append(v.complaints, "failed: "+e.ErrorText+" "+v.byID[e.RequestID])
	case *runtime.EventExceptionThrown:
		v.complaints = append(v.complaints, "exception: "+e.ExceptionDetails.Text+" "+e.ExceptionDetails.URL)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			v.complaints = append(v.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

// TestBrowser loads the live page in Chromium and checks the number of requests, the weight,
// that the console is silent, and that the page comes to rest. SHOT=FILE keeps the
// screenshot, SHOT_FULL=FILE that of the whole page.
func TestBrowser(t *testing.T) {
	chromium := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	o := start(t, Options{})
	var rules []string
	for host, to := range o.hostPorts() {
		rules = append(rules, fmt.Sprintf("MAP %s:443 %s", host, to))
	}
	slices.Sort(rules)
	var pins []string
	for _, h := range []string{WWW, CDN, Ads} {
		cert, err := x509.ParseCertificate(o.authority.leaves[h].Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		pins = append(pins, base64.StdEncoding.EncodeToString(sum[:]))
	}
	profile := testlab.TempDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	actx, acancel := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute),
		chromedp.WindowSize(1280, 720),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", strings.Join(rules, ",")),
		chromedp.Flag("ignore-certificate-errors-spki-list", strings.Join(pins, ",")))...)
	defer acancel()
	bctx, bcancel := chromedp.NewContext(actx)
	defer bcancel()

	v := &visitLog{byID: map[network.RequestID]string{}}
	if err := chromedp.Listen(bctx, v.event); err != nil {
		t.Fatal(err)
	}
	first, again, full, err := load(bctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		t.Fatalf("%v; requests %d, complaints %q", err, len(v.urls), v.complaints)
	}
	t.Logf("%d requests, %.0f bytes", len(v.urls), v.bytes)
	if len(v.complaints) > 0 {
		t.Errorf("the browser complained:\n%s", strings.Join(v.complaints, "\n"))
	}
	if n := len(v.urls); n < 50 || n > 75 {
		t.Errorf("%d requests, want 50 to 75:\n%s", n, strings.Join(v.urls, "\n"))
	}
	if v.bytes < 1.2e6 || v.bytes > 1.9e6 {
		t.Errorf("%.0f bytes, want 1.2 to 1.9 MB", v.bytes)
	}
	if !bytes.Equal(first, again) {
		t.Error("the page was not still after 2.6 s")
	}
	for name, shot := range map[string][]byte{os.Getenv("SHOT"): first, os.Getenv("SHOT_FULL"): full} {
		if name != "" {
			if err := os.WriteFile(name, shot, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}

// settled is a script that is true once every part of the page has loaded and nothing moves.
const settled = `document.querySelectorAll('#recommendations img').length === 6
	&& [...document.images].every(i => i.complete && i.naturalWidth)
	&& document.querySelector('#bag-total').textContent !== '€0.00'
	&& document.querySelector('#express').textContent.length > 9
	&& document.querySelector('#stock').textContent.length > 9
	&& document.querySelector('#review-count').textContent.length > 3
	&& document.querySelector('#swatch-size').textContent.startsWith('206')
	&& document.querySelector('#hero-picture').classList.contains('shown')
	&& document.getAnimations().every(a => a.playState === 'finished')`

// until waits for a condition with a promise, because a policy without unsafe-eval forbids
// chromedp.Poll.
func until(condition string) chromedp.Action[bool] {
	return chromedp.Evaluate[bool](`new Promise(done => { const look = () => `+condition+
		` ? done(true) : setTimeout(look, 50); look(); })`, chromedp.EvalAwaitPromise)
}

// load opens the page and takes screenshots when it has settled, 1.5 s later, and of the whole page.
func load(ctx context.Context) (first, again, full []byte, err error) {
	if _, err = chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		return
	}
	if _, err = chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		return
	}
	if err = chromedp.Do(ctx, chromedp.EmulateViewport(1280, 720), chromedp.Navigate(Home)); err != nil {
		return
	}
	if _, err = chromedp.Run(ctx, until(settled+" && performance.now() > 2600")); err != nil {
		return
	}
	if first, err = chromedp.Run(ctx, chromedp.CaptureScreenshot()); err != nil {
		return
	}
	if _, err = chromedp.Run(ctx, until("performance.now() > 4100")); err != nil {
		return
	}
	if again, err = chromedp.Run(ctx, chromedp.CaptureScreenshot()); err != nil {
		return
	}
	// Chromium does not paint a frame outside the screen: scroll to it first.
	if err = chromedp.Do(ctx, chromedp.ScrollIntoView("iframe")); err != nil {
		return
	}
	full, err = chromedp.Run(ctx, chromedp.FullScreenshot(100))
	return
}
