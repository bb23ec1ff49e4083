package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/replay/match"
)

// framed is a message of gRPC.
func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

func readFramed(r io.Reader) (string, error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", err
	}
	text := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// guide answers each message, and says how many there were once the device has ended its side.
func guide(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	if strings.HasSuffix(r.URL.Path, "Greets") {
		_, _ = w.Write(framed("welcome"))
		_ = http.NewResponseController(w).Flush()
	}
	n := 0
	for {
		said, err := readFramed(r.Body)
		if err != nil {
			break
		}
		n++
		_, _ = w.Write(framed("re " + said))
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = w.Write(framed(fmt.Sprint(n, " in all")))
	w.Header().Set("Grpc-Status", "0")
}

// call says one message after the other, each once the answer to the one before has come, and tells what it heard.
func (b *bench) call(path string, greets bool, says ...string) string {
	ctx, cancel := context.WithTimeout(b.t.Context(), testlab.Hang)
	defer cancel()
	from, to := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, "POST", "https://www.example.com/"+path, from)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc+proto")
	r.Header.Set("Te", "trailers")
	go func() { // the first message goes with the request
		if !greets {
			_, _ = to.Write(framed(says[0]))
		}
	}()
	resp, err := b.client.Do(r)
	if err != nil {
		return "error: " + err.Error()
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_ = to.CloseWithError(io.ErrClosedPipe)
		return resp.Status
	}
	var heard []string
	hear := func() {
		text, err := readFramed(resp.Body)
		heard = append(heard, text)
		if err != nil {
			heard = append(heard, err.Error())
		}
	}
	if hear(); greets {
		_, _ = to.Write(framed(says[0]))
		hear()
	}
	for _, text := range says[1:] {
		_, _ = to.Write(framed(text))
		hear()
	}
	_ = to.Close()
	hear()
	_, err = io.ReadAll(resp.Body)
	return fmt.Sprint(heard, err, resp.Trailer.Get("Grpc-Status"))
}

// TestCallsInStep: both sides of a stream of gRPC go on talking in a replay as they did, also if the device says something
// else later on; a call that begins otherwise is a miss at once.
func TestCallsInStep(t *testing.T) {
	b := newBench(t, http.HandlerFunc(guide), true)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	const wantTwo, wantGreeted = "[re a re bb 2 in all] <nil>0", "[welcome re hi 1 in all] <nil>0"
	if got := b.call("Guide/Talk", false, "a", "bb"); got != wantTwo {
		t.Fatalf("while recording, the call hears %s; want %s", got, wantTwo)
	}
	b.call("Guide/Talk", false, "other")
	b.call("Guide/Greets", true, "hi")
	const once = "https://www.example.com/Guide/Once"
	isCall := http.Header{"Content-Type": {"application/grpc"}}
	whole := b.get("POST", once, string(framed("one")), isCall)
	a := finish()
	b.origin.Close()
	for _, mode := range []TimingMode{TimingNone, TimingRecorded} {
		s := b.replay(a, Options{Timing: Timing{Mode: mode}})
		for _, c := range []struct{ got, want string }{
			{b.call("Guide/Talk", false, "other"), "[re other 1 in all] <nil>0"},
			{b.call("Guide/Talk", false, "a", "bb"), wantTwo},
			{b.call("Guide/Talk", false, "a", "something longer"), wantTwo},
			{b.call("Guide/Greets", true, "hi"), wantGreeted},
			{b.get("POST", once, string(framed("one")), isCall), whole},
		} {
			if c.got != c.want {
				t.Errorf("%s: the call hears %s; want %s", mode, c.got, c.want)
			}
		}
		if st := s.Stats(); st.Misses > 0 {
			t.Errorf("%s: %+v; want no miss", mode, st)
		}
		for _, path := range []string{"Guide/Talk", "Guide/Unknown"} {
			if got := b.call(path, false, "never said"); got != "404 Not Found" {
				t.Errorf("%s: a call of %s that nobody recorded gets %s; want 404 Not Found", mode, path, got)
			}
		}
		if st := s.Stats(); st.Misses != 2 {
			t.Errorf("%s: %d misses, want 2", mode, st.Misses)
		}
	}
	b.replay(a, Options{Match: match.Loose, Timing: Timing{Mode: TimingNone}})
	if got := b.call("Guide/Talk", false, "never said", "bb"); got != wantTwo {
		t.Errorf("under loose, a call that begins otherwise hears %s; want %s", got, wantTwo)
	}
}

// TestWoven: what both sides of a call said is put in its order, also where pieces of the answer came together.
func TestWoven(t *testing.T) {
	e := &lab.Exchange{
		Request: lab.Message{Body: []byte("abc")}, Response: lab.Message{Body: []byte("12345")}, FirstByte: 2,
		Sent:   []lab.Sent{{At: 1, Bytes: 1, Heard: -1}, {At: 3, Bytes: 2}, {At: 7, Heard: 3}},
		Chunks: []lab.Chunk{{At: 5, Bytes: 2}, {At: 6, Bytes: 3}},
	}
	got := ""
	for _, p := range woven(e) {
		got += fmt.Sprintf("%v:%s ", map[bool]string{true: "says ", false: "hears "}[p.Device]+time.Duration(p.At).String(), p.Data)
	}
	if want := "says 1ns:a hears 2ns: says 3ns:bc hears 5ns:12 hears 6ns:3 says 7ns: hears 6ns:45 "; got != want {
		t.Errorf("woven() = %s, want %s", got, want)
	}
}

// FuzzCallCounter: messages are counted alike however they are cut, and what is held of one is bounded.
func FuzzCallCounter(f *testing.F) {
	f.Add(append(append(framed("one"), framed("")...), framed(strings.Repeat("x", 300))...), 1)
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1}, 2)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		defer testlab.Input(t)()
		whole, cut, n := callCounter{}, callCounter{}, 0
		size = max(1, size)
		for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			n += cut.feed(rest[:min(size, len(rest))])
		}
		want := 0
		if len(text) > 0 {
			want = whole.feed(text)
		}
		if n != want || cut.skip != whole.skip || string(cut.head) != string(whole.head) || len(cut.head) > 4 {
			t.Errorf("in pieces of %d bytes, %d messages and %+v left; want %d and %+v", size, n, cut, want, whole)
		}
	})
}
