package sntp

import (
	"encoding/binary"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

func question(version, mode byte) []byte {
	b := make([]byte, packetSize)
	b[0] = version<<3 | mode
	binary.BigEndian.PutUint64(b[40:], 0x0123456789abcdef) // a client's own secret
	return b
}

func TestAnswer(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 500_000_000, time.UTC)
	for version := byte(1); version <= 4; version++ {
		b, err := Answer(question(version, 3), now, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		sent := binary.BigEndian.Uint64(b[40:])
		if b[0] != version<<3|4 || b[1] != stratum || binary.BigEndian.Uint64(b[24:]) != 0x0123456789abcdef ||
			int64(sent>>32)-epoch != now.Unix() || uint32(sent) != 1<<31 {
			t.Errorf("the answer to version %d is %x", version, b)
		}
	}
	if b, err := Answer(question(3, 1), now, time.Time{}); err != nil || b[0] != 3<<3|2 {
		t.Errorf("the answer to a symmetric peer is %x (%v), want mode 2", b, err)
	}
	if b, err := Answer(question(1, 0), now, time.Time{}); err != nil || b[0] != 1<<3|4 {
		t.Errorf("the answer to version 1, which has no mode, is %x (%v), want mode 4", b, err)
	}
	// NTP's second era starts on 7 February 2036.
	b, err := Answer(question(4, 3), time.Date(2036, 2, 7, 6, 28, 17, 0, time.UTC), time.Time{})
	if err != nil || binary.BigEndian.Uint32(b[40:]) != 1 {
		t.Errorf("in the second era the answer is %x (%v)", b, err)
	}
	for says, ask := range map[string][]byte{
		"bytes":   make([]byte, 47),
		"mode 0":  question(4, 0),
		"mode 4":  question(4, 4),
		"mode 6":  question(2, 6),
		"mode 7":  question(2, 7),
		"version": question(0, 3),
	} {
		if _, err := Answer(ask, now, time.Time{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Answer() = %v, want an error that says %q", err, says)
		}
	}
	if _, err := Answer(question(4, 3), time.Unix(0, 0), now); err == nil || !strings.Contains(err.Error(), "1970-01-01") {
		t.Errorf("Answer() with a clock before the floor = %v, want an error with its date", err)
	}
}

// TestServe asks over both families, more often than the limit of answers.
func TestServe(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s, err := Serve(Config{Addr: ":0", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers := 0
	b := make([]byte, 100)
	for range perSecond + 50 { // the clock stands still: one second
		if _, err := c.Write(question(4, 3)); err != nil {
			t.Fatal(err)
		}
		if answers == perSecond { // from here on it is silent
			continue
		}
		if err := c.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(b)
		if err != nil || n != packetSize {
			t.Fatalf("answer %d: %d bytes (%v)", answers, n, err)
		}
		answers++
	}
	if s.allow(now) {
		t.Error("every request was answered, want a limit")
	}
	if !s.allow(now.Add(time.Second)) {
		t.Error("no request of the next second was answered")
	}
}

// patient is a socket that accepts every deadline.
type patient struct{ net.PacketConn }

func (patient) SetWriteDeadline(time.Time) error { return nil }

// On a machine that stalls between the deadline and the write no answer is lost.
func TestStallsLoseNoAnswer(t *testing.T) {
	asked, tries := false, 0
	s := &Server{c: Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
	s.run(patient{}, func(b []byte) (int, func([]byte) error, error) {
		if asked {
			return 0, nil, net.ErrClosed
		}
		asked = true
		return copy(b, question(4, 3)), func([]byte) error {
			if tries++; tries == 1 {
				return os.ErrDeadlineExceeded
			}
			return nil
		}, nil
	})
	if tries != 2 {
		t.Errorf("the answer was written %d times, want 2", tries)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(question(4, 3))
	f.Add(question(1, 1))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, ask []byte) {
		defer testlab.Input(t)()
		b, err := Answer(ask, time.Unix(1.7e9, 0), time.Time{})
		mode := byte(4)
		if len(ask) > 0 && ask[0]&7 == 1 { // a peer
			mode = 2
		}
		if err == nil && (len(b) != packetSize || len(b) > len(ask) || b[0]&7 != mode) {
			t.Fatalf("Answer(%x) = %x, want a packet of a server", ask, b)
		}
	})
}
