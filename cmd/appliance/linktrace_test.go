package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/link"
)

// TestLinkTraceRecord makes a trace of a trial's report and follows it.
func TestLinkTraceRecord(t *testing.T) {
	dir := t.TempDir()
	report, out := filepath.Join(dir, "link.json"), filepath.Join(dir, "t.trace")
	// 12.5 kB in a tenth of a second are 1 Mbit/s.
	if err := os.WriteFile(report, []byte(`{"backend":"packet","bins":[{"down_bytes":12500},{"down_bytes":25000,"up_bytes":100},{"down_bytes":12500}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := (&LinkTraceRecordCmd{Report: report, Out: out}).Run(&streams{out: &said, err: io.Discard}); err != nil {
		t.Fatal(err)
	}
	p, err := localProfiles().Parse("rtt=20ms,downtrace=" + out)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.DownTrace.Rate(); r < 1.2e6 || r > 1.4e6 || p.DownTrace.Period > 300*time.Millisecond ||
		!strings.Contains(said.String(), "33 packets") {
		t.Errorf("a trace of %d bit/s in %v; said %q", r, p.DownTrace.Period, said.String())
	}
	if _, err := link.Parse("downtrace=" + out); err == nil {
		t.Error("a profile that came over a network may name a file")
	}
	for name, content := range map[string]string{"none": `{}`, "broken": `{"bins":3}`} {
		if err := os.WriteFile(report, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := (&LinkTraceRecordCmd{Report: report, Out: out}).Run(&streams{out: io.Discard, err: io.Discard}); err == nil ||
			!strings.Contains(err.Error(), report) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}
