package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/analysis/framecode"
	"eidetic/internal/testlab"
	"eidetic/internal/testlab/xtest"
)

// longPage scrolls itself when its first code has been drawn, with busy loops of known lengths,
// and notes in the frame codes where it is.
func longPage() string {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "<p style='margin:%dpx'>paragraph %d: %s</p>", 3+i%7, i*7919%1000, strings.Repeat("words of many lengths ", 2+i*31%9))
	}
	return "<!doctype html><meta charset=utf-8><style>html{scroll-behavior:auto}::-webkit-scrollbar{display:none}</style><body>" + text.String() +
		"<script>" + framecode.Script + `</script><script>
let n = 0;
const busy = ms => { const t = performance.now(); while (performance.now() - t < ms); };
const step = () => {
	n++;
	if (n > 60 && n < 360) scrollBy(0, 5 + n % 7);
	const loops = {120: 30, 180: 50, 240: 100, 300: 200};
	if (loops[n]) busy(loops[n]);
	requestAnimationFrame(step);
};
requestAnimationFrame(step);</script>`
}

// TestAnalyzeBrowser: a long page scrolls in Chromium on a virtual screen. The displacement
// that is measured from pixels is that of the page's own scrollY, which the frame codes
// carry, in every frame that shows a whole code.
func TestAnalyzeBrowser(t *testing.T) {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, longPage())
	}))
	defer server.Close()
	display := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "800x600x24", "-nocursor").Display
	home := testlab.TempDir(t)
	cmd := exec.Command(program, "--no-sandbox", "--disable-gpu", "--kiosk", "--no-first-run", "--test-type", "--disable-background-networking",
		"--window-position=0,0", "--window-size=801,601", "--user-data-dir="+filepath.Join(home, "profile"), server.URL)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + home, "DISPLAY=" + display, "XAUTHORITY=" + xtest.File(t, display),
		"XDG_RUNTIME_DIR=" + home, "LANG=C.UTF-8"}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Setenv("XAUTHORITY", xtest.File(t, display))
	file := filepath.Join(home, "scroll.reel")
	if status, _, errs := invoke(t, "capture", "--source", "x11:"+display, "--out", file, "--duration", "10s"); status != exitGood {
		t.Fatalf("capture: status %d: %s", status, errs)
	}
	status, text, errs := invoke(t, "analyze", file, "--json", "--content", "800x580+0+20", "--start", "0", "--metrics", "rate,motion,codes,tearing")
	if status != exitGood {
		t.Fatalf("analyze: status %d: %s", status, errs)
	}
	var got analysed
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	columns := map[string][]float64{}
	for _, c := range got.More.Columns {
		columns[c.Name] = c.Values
	}
	counter, bits, y := columns["code_counter"], columns["code_bits"], columns["dy"]
	if len(bits) == 0 || len(bits) != len(y) {
		t.Fatalf("%d codes, %d displacements: %s", len(bits), len(y), strings.Join(got.Warnings, "; "))
	}
	compared, moved, wrong := 0, 0, 0
	for i := 1; i < len(bits); i++ {
		if counter[i] == 0 || counter[i-1] == 0 {
			continue
		}
		compared++
		want := bits[i-1] - bits[i]
		if want != 0 {
			moved++
		}
		if math.Abs(y[i]-want) > 1 {
			wrong++
			t.Logf("frame %d: moved by %v, the page's scrollY by %v", i, y[i], want)
		}
	}
	t.Logf("%d frames compared, %d of them moved, %d differ; stalls: %+v", compared, moved, wrong, got.More.Stalls)
	// Where code and page are drawn in two passes a frame may show one before the other.
	if moved < 60 || 100*wrong > 3*moved {
		t.Errorf("of %d frames %d moved, and in %d the displacement is not the page's; want at most 3 %%", compared, moved, wrong)
	}
}
