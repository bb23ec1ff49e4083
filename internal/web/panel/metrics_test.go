package panel

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"eidetic/internal/keep/store"
)

func TestMetrics(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	config, _, _ := whole(t)
	config.Queue = queueOf(config.Store, q, &fakeRunner{})
	config.Automation = keeperOf(t, config)
	config.Disk = func() (int64, int64, error) { return 7e11, 1e12, nil }
	if err := q.Add(t.Context(), store.Job{ID: "20270103-000000-waits", Device: "laptop", Created: testNow()}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, config)
	if got := ask(t, s, http.MethodGet, "/metrics", nil); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("metrics without a token = %d, want 401", got.StatusCode)
	}
	got := ask(t, s, http.MethodGet, "/metrics", sending(token, ""))
	if got.StatusCode != 200 || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/plain") {
		t.Fatalf("metrics = %d %s", got.StatusCode, got.Header.Get("Content-Type"))
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(got.text)); err != nil {
		t.Errorf("Prometheus's own parser says: %v", err)
	}
	for _, want := range []string{
		`eidetic_build_info{version="v1"} 1`, `eidetic_runs{state="done"} 1`, `eidetic_trials{valid="true"} 2`, `eidetic_trials{valid="false"} 0`,
		"eidetic_queue_length 1", "eidetic_queue_running 0", "eidetic_disk_free_bytes 7e+11", "eidetic_disk_size_bytes 1e+12",
		`eidetic_webhook_deliveries{state="waiting"} 0`, "eidetic_alerts_open 0", `eidetic_part_up{part="panel"} 1`, "eidetic_warnings 0",
		`eidetic_scrape_failed{part="runs"} 0`, "process_resident_memory_bytes ", "go_goroutines ",
	} {
		if !strings.Contains(got.text, "\n"+want) {
			t.Errorf("no line %q", want)
		}
	}
	for _, never := range []string{"shop.example", "20261121", "nightly"} { // labels of pages, runs or tokens have no bound
		if strings.Contains(got.text, never) {
			t.Errorf("the metrics name %q", never)
		}
	}
	got = ask(t, s, http.MethodGet, "/metrics", func(r *http.Request) {
		sending(token, "")(r)
		r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
	})
	if kind := got.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(got.text, "\n# EOF\n") {
		t.Errorf("who asks for OpenMetrics gets %s, %d bytes; want the format with its end", kind, len(got.text))
	}
}
