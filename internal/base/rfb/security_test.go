package rfb

import (
	"io"
	"net"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestSecurityTypes: if a server offers no supported security type, the error names the setting of that server.
func TestSecurityTypes(t *testing.T) {
	for _, c := range []struct {
		version string
		offered []byte
		want    string
	}{
		{"RFB 003.889\n", []byte{30, 33, 36}, "on a Mac"},
		{"RFB 005.000\n", []byte{13, 133, 5, 129}, "in RealVNC"},
		{"RFB 003.008\n", []byte{113, 17}, "in UltraVNC"},
		{"RFB 003.008\n", []byte{19, 18}, "-SecurityTypes VncAuth"},
		{"RFB 003.007\n", []byte{30, 2}, "asks for a password"},
	} {
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.WriteString(theirs, c.version)
			_, _ = io.ReadFull(theirs, make([]byte, 12))
			_, _ = theirs.Write(append([]byte{byte(len(c.offered))}, c.offered...))
			_, _ = io.Copy(io.Discard, theirs)
		}()
		_, err := New(t.Context(), ours, lab.Secret{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q offers %v: %v; want an error that says %q", c.version, c.offered, err, c.want)
		}
		_ = theirs.Close()
		<-done
	}
}
