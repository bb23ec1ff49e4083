package replay

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
)

// TestWebSocketFromHAR: a device hears of a HAR what it heard live, whether the HAR has our own fields
// or only those of Chrome, in which messages are not compressed.
func TestWebSocketFromHAR(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := newBench(t, chat(), false)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	live := b.talk(ctx)
	<-b.logged
	a := finish()
	b.origin.Close()
	var har bytes.Buffer
	if err := archive.WriteHAR(&har, a); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"own":    har.String(),
		"Chrome": strings.ReplaceAll(har.String(), `"_eidetic":`, `"_unknown":`),
	} {
		read, err := archive.OpenReader(strings.NewReader(text), int64(len(text)), archive.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s := b.replay(read, Options{Timing: Timing{Mode: TimingRecorded}})
		if got := b.talk(ctx); got != live {
			t.Errorf("%s: heard\n%s\nwant\n%s", name, got, live)
		}
		if line := <-b.logged; line.Stage != "exact" || line.Status != 101 || s.Stats().Misses != 0 {
			t.Errorf("%s: the log has %+v, %d misses; want an exact 101, 0 misses", name, line, s.Stats().Misses)
		}
	}
}

// TestInjectOptions: a replay gives pages the seed and the date of the recording, and of an
// import, which has no date for pages, the date of its first request.
func TestInjectOptions(t *testing.T) {
	other := recordedAt.Add(time.Hour)
	for _, x := range []struct {
		name string
		made archive.CreateOptions
		o    inject.Options
		want inject.Options
	}{
		{"recording", archive.CreateOptions{Seed: 5, Wall: other, PageDate: recordedAt}, inject.Options{}, inject.Options{Seed: 5, Date: recordedAt}},
		{"import", archive.CreateOptions{Wall: recordedAt}, inject.Options{}, inject.Options{Date: recordedAt}},
		{"other options", archive.CreateOptions{Seed: 5, PageDate: recordedAt}, inject.Options{Seed: 6, Date: other}, inject.Options{Seed: 6, Date: other}},
	} {
		if got := InjectOptions(archive.New(nil, nil, nil, x.made), x.o); got.Seed != x.want.Seed || !got.Date.Equal(x.want.Date) {
			t.Errorf("%s: InjectOptions() = %+v; want the seed %d and the date %v", x.name, got, x.want.Seed, x.want.Date)
		}
	}
}
