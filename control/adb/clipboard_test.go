package adb_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/base/scrcpyserver/servertest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// unicode has characters of one to four bytes, which no layout has all.
const unicode = "ab 日本語 – ñ 😀"

// TestClipboardMessages: the bytes are those of scrcpy's own tests, test_control_msg_serialize.c and
// test_device_msg_deserialize.c.
func TestClipboardMessages(t *testing.T) {
	const sequence = 0x0102030405060708
	want := "\x09\x01\x02\x03\x04\x05\x06\x07\x08\x01\x00\x00\x00\x0dhello, world!"
	if got := string(adb.AppendSetClipboard(nil, sequence, true, "hello, world!")); got != want {
		t.Errorf("SET_CLIPBOARD is %q; want %q", got, want)
	}
	for _, c := range []struct {
		in       string
		kind     byte
		sequence uint64
		text     string
	}{
		{"\x00\x00\x00\x00\x03ABC", 0, 0, "ABC"},
		{"\x01\x01\x02\x03\x04\x05\x06\x07\x08", 1, sequence, ""},
		{"\x02\x00\x2a\x00\x05\x01\x02\x03\x04\x05", 2, 0, ""},
	} {
		r := strings.NewReader(c.in)
		kind, n, text, err := adb.ReadAnswer(r)
		if kind != c.kind || n != c.sequence || text != c.text || err != nil || r.Len() > 0 {
			t.Errorf("%q is read as %d, %#x, %q, %v, with %d bytes left; want %d, %#x, %q and none", c.in, kind, n, text, err, r.Len(),
				c.kind, c.sequence, c.text)
		}
	}
	for in, says := range map[string]string{
		"\x03":                     "3 is no message of scrcpy's server",
		"\x00\x00\x04\x00\x01":     "a clipboard of 262145 bytes",
		"\x00\x00\x00\x00\x03AB":   "EOF",
		"\x01\x01\x02":             "EOF",
		"\x02\x00\x2a\x00\x05\x01": "EOF",
		"":                         "EOF",
	} {
		if kind, _, text, err := adb.ReadAnswer(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is read as %d, %q, %v; want an error with %q", in, kind, text, err, says)
		}
	}
}

// FuzzClipboard: whatever a server sends is read in bounded memory.
func FuzzClipboard(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x03ABC\x01\x01\x02\x03\x04\x05\x06\x07\x08\x02\x00\x2a\x00\x05\x01\x02\x03\x04\x05"))
	f.Add([]byte("\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		r := bytes.NewReader(b)
		for {
			_, _, text, err := adb.ReadAnswer(r)
			if len(text) > len(b) {
				t.Fatalf("a text of %d bytes from %d", len(text), len(b))
			}
			if err != nil {
				return
			}
		}
	})
}

// TestPaste: a text that no layout has comes by the phone's clipboard, whole and once, in an interval in which the key was
// pressed; what the layout has is typed as before.
func TestPaste(t *testing.T) {
	client, phone := plugIn(t)
	for _, version := range []string{"2.1", "3.3.4", "4.1"} {
		t.Run(version, func(t *testing.T) {
			var pasted atomic.Int64
			board := &servertest.Clipboard{OnPaste: func(string) { pasted.Store(int64(lab.Monotonic())) }}
			servertest.Serve(phone, version, board.Serve)
			c, err := adb.Open(within(t), adb.Options{Client: client, Server: servertest.Jar(t, version)})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if says := strings.Join(c.Capabilities().Limits, " "); !strings.Contains(says, "pasted by scrcpy's server "+version) {
				t.Errorf("the controls' limits are %q", says)
			}
			if pasted, err := c.PrepareText(within(t), unicode); !pasted || err != nil || len(board.Heard()) > 0 {
				t.Errorf("PrepareText() = %v, %v, and the server heard %q; want a text to paste, and nothing sent", pasted, err, board.Heard())
			}
			typed := len(phone.Keys())
			e, err := c.Text(within(t), unicode)
			if at := lab.Time(pasted.Load()); err != nil || e.Name != lab.EventPaste || e.Detail != unicode || at < e.Earliest || at > e.Latest {
				t.Errorf("Text() = %+v, %v; pasted at %d", e, err, at)
			}
			if got := board.Pasted(); !slices.Equal(got, []string{unicode}) || len(phone.Keys()) != typed {
				t.Errorf("pasted %q, keys %q; want %q and no key", got, phone.Keys()[typed:], unicode)
			}
			size := string(rune(len(unicode)))
			want := "\x09\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00" + size + unicode + "\x08\x00" +
				"\x09\x00\x00\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00" + size + unicode
			if got := string(board.Heard()); got != want {
				t.Errorf("the server heard %q; want %q", got, want)
			}
			if e, err := c.Text(within(t), "ab"); err != nil || e.Name != lab.EventText || len(phone.Keys()) != typed+4 || len(board.Pasted()) != 1 {
				t.Errorf("Text() of what the layout has = %+v, %v, keys %q", e, err, phone.Keys()[typed:])
			}
			if starts := board.Starts(); len(starts) != 1 || starts[0].Options["power_on"] != "false" || starts[0].Options["clipboard_autosync"] != "false" {
				t.Errorf("the server was started as %+v; want once, with the screen left as it is", starts)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			awaitNoPrograms(t, phone)
		})
	}
}

// awaitNoPrograms waits until no server runs on the phone; its file is gone.
func awaitNoPrograms(t *testing.T, phone *adbtest.Phone) {
	t.Helper()
	for ctx := within(t); phone.Programs() > 0; {
		if err := lab.Wait(ctx, time.Millisecond); err != nil {
			t.Fatalf("%d servers still run on the phone", phone.Programs())
		}
	}
	if phone.Files() != 0 {
		t.Errorf("%d files are left on the phone", phone.Files())
	}
}

// TestPasteRefused: what can neither be typed nor pasted is refused before the first key, with what to do; the next
// text is pasted again.
func TestPasteRefused(t *testing.T) {
	client, phone := plugIn(t)
	jar := servertest.Jar(t, "3.3.4")
	for _, c := range []struct {
		name, file, text, says string
		board                  *servertest.Clipboard
		installed              string
		patience               time.Duration
	}{
		{"no file", "/none", unicode, "cannot be pasted: scrcpy: there is no server at /none: download scrcpy-server", nil, "", 0},
		{"another file", "/bin/sh", unicode, "it is no server of scrcpy", nil, "", 0},
		{"1.25", servertest.Jar(t, "1.25"), unicode, "takes no input without filming: take 2.1 or later", nil, "", 0},
		{"2.0", servertest.Jar(t, "2.0"), unicode, "takes no input without filming: take 2.1 or later", nil, "", 0},
		{"a line break", jar, "日本\n", "write character 3 (U+000A) as a step of its own, key Enter", nil, "3.3.4", 0},
		{"a control character", jar, "日\x07", "is a control character", nil, "3.3.4", 0},
		{"another version", jar, unicode, "does not match the client", nil, "3.3.3", 0},
		{"a phone without a clipboard", jar, unicode, "the phone's clipboard has another text afterwards", &servertest.Clipboard{Deaf: true}, "3.3.4", 0},
		{"a silent server", jar, unicode, "deadline", &servertest.Clipboard{Silent: true}, "3.3.4", time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			board := c.board
			if board == nil {
				board = &servertest.Clipboard{}
			}
			phone.Install(nil)
			if c.installed != "" {
				servertest.Serve(phone, c.installed, board.Serve)
			}
			controller, err := adb.Open(within(t), adb.Options{Client: client, Server: c.file})
			if err != nil {
				t.Fatal(err)
			}
			defer controller.Close()
			ctx := within(t)
			if c.patience > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.patience)
				defer cancel()
			}
			keys := len(phone.Keys())
			if e, err := controller.Text(ctx, c.text); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Text() = %+v, %v; want an error with %q", e, err, c.says)
			}
			if len(phone.Keys()) != keys || len(board.Pasted()) > 0 {
				t.Errorf("keys %q, pasted %q; want neither", phone.Keys()[keys:], board.Pasted())
			}
			if c.file != jar {
				return
			}
			servertest.Serve(phone, "3.3.4", (&servertest.Clipboard{}).Serve)
			if _, err := controller.Text(within(t), unicode); err != nil {
				t.Errorf("the next Text() = %v; want it pasted", err)
			}
		})
	}
}

// TestPasteEnds: a phone that goes away while it is to paste ends that.
func TestPasteEnds(t *testing.T) {
	client, phone := plugIn(t)
	board := &servertest.Clipboard{}
	board.OnPaste = func(string) { phone.Leave() }
	servertest.Serve(phone, "3.3.4", board.Serve)
	c, err := adb.Open(within(t), adb.Options{Client: client, Server: servertest.Jar(t, "3.3.4")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if e, err := c.Text(within(t), unicode); err == nil || !strings.Contains(err.Error(), "pasting") {
		t.Errorf("Text() of a phone that goes away = %+v, %v; want an error", e, err)
	}
}
