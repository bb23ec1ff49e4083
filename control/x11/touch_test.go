package x11

import (
	"context"
	"encoding/binary"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// answer is a message of the server's driver.
func answer(kind, length uint32, body ...uint16) []byte {
	b := binary.NativeEndian.AppendUint32(nil, length)
	b = binary.NativeEndian.AppendUint32(b, kind)
	for _, v := range body {
		b = binary.NativeEndian.AppendUint16(b, v)
	}
	return b
}

// driven returns a touch screen whose driver gives one answer, and then closes the connection.
func driven(t *testing.T, says []byte) *touchScreen {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close() })
	go func() {
		defer theirs.Close()
		var b [4096]byte
		if _, err := theirs.Read(b[:]); err == nil {
			_, _ = theirs.Write(says)
		}
	}()
	return &touchScreen{conn: ours}
}

// TestTouchAnswers: an answer that is none of the protocol's ends the connection, in words.
func TestTouchAnswers(t *testing.T) {
	hello := message(sendVersion, headBytes+4)
	for name, c := range map[string]struct {
		says []byte
		want string // "" for an answer that is good
	}{
		"good":              {answer(isVersion, 12, 1, 1), ""},
		"newer, compatible": {answer(isVersion, 12, 1, 7), ""},
		"another version":   {answer(isVersion, 12, 2, 0), "is of version"},
		"no version":        {answer(isVersion, 8), "is of version"},
		"another kind":      {answer(isDone, 8), "answers with 8 bytes of kind 1"},
		"huge":              {answer(isVersion, 1<<31, 1, 1), "answers with 2147483648 bytes"},
		"shorter than head": {answer(isVersion, 3), "answers with 3 bytes"},
		"cut":               {answer(isVersion, 12, 1), "does not answer"},
		"nothing":           {nil, "does not answer"},
	} {
		err := driven(t, c.says).ask(t.Context(), isVersion, hello)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: ask() = %v; want an error with %q", name, err, c.want)
		}
	}
}

// TestTouchAfterContext: a server that does not answer is waited for no longer than the caller wants.
func TestTouchAfterContext(t *testing.T) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	go func() { _, _ = theirs.Read(make([]byte, 4096)) }()
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	if err := (&touchScreen{conn: ours}).ask(ctx, isDone, message(sendWait, headBytes)); err == nil {
		t.Error("ask() of a server that is silent = nil; want an error")
	}
}

// TestNoTouchScreen: an X server without one says so.
func TestNoTouchScreen(t *testing.T) {
	c := &Controller{}
	if _, err := c.Touch(t.Context()); err == nil || !strings.Contains(err.Error(), "no touch screen") {
		t.Errorf("Touch() = %v; want that there is no touch screen", err)
	}
	if err := c.ConnectTouch(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("ConnectTouch() at a socket that does not exist = nil; want an error")
	}
}
