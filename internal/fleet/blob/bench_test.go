package blob_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
)

// BenchmarkUpload sends files of 8 MiB over TLS on this machine into a folder, each with its digest checked and synced,
// from 1 and from 8 boxes; BenchmarkPlain copies the same bytes over the same TLS into a file without any of that.
func BenchmarkUpload(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			u, _, err := uploads(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			s := httptest.NewUnstartedServer(u.Handler(owner))
			s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
			s.StartTLS()
			defer s.Close()
			parallel(b, clients, func(digest string, content []byte) error {
				return blob.Send(b.Context(), s.Client(), s.URL+"/"+digest, http.Header{"Box": {digest}}, bytes.NewReader(content), benchBytes, blob.Policy{})
			})
		})
	}
}

const benchBytes = 8 << 20

// BenchmarkPlain is the peer of BenchmarkUpload.
func BenchmarkPlain(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			certificate := httptest.NewTLSServer(http.NotFoundHandler())
			defer certificate.Close()
			l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate.TLS.Certificates, MinVersion: tls.VersionTLS13})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			dir := b.TempDir()
			go func() {
				for i := 0; ; i++ {
					c, err := l.Accept()
					if err != nil {
						return
					}
					go save(c, filepath.Join(dir, fmt.Sprint(i)))
				}
			}()
			trust := certificate.Client().Transport.(*http.Transport).TLSClientConfig
			parallel(b, clients, func(_ string, content []byte) error {
				c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: trust.RootCAs, ServerName: "example.com", MinVersion: tls.VersionTLS13})
				if err != nil {
					return err
				}
				defer c.Close()
				if _, err := io.Copy(c, bytes.NewReader(content)); err != nil {
					return err
				}
				if err := c.CloseWrite(); err != nil {
					return err
				}
				_, err = io.ReadAll(c) // until the other side has all
				return err
			})
		})
	}
}

func save(c net.Conn, path string) {
	defer c.Close()
	f, err := os.Create(path)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = io.Copy(f, c) // a broken connection ends the benchmark at its other end
}

// parallel calls f b.N times from so many goroutines, each time with other content.
func parallel(b *testing.B, clients int, f func(digest string, content []byte) error) {
	b.SetBytes(benchBytes)
	_, base := blobtest.Content(1, benchBytes)
	stamp := func(content []byte, i int) []byte {
		copy(content, base)
		binary.BigEndian.PutUint64(content, uint64(i))
		return content
	}
	digests := make([]string, b.N)
	for i := range digests {
		digests[i] = blobtest.Digest(stamp(make([]byte, benchBytes), i))
	}
	var next atomic.Int64
	done := make(chan error, clients)
	b.ResetTimer()
	for range clients {
		go func() {
			content := make([]byte, benchBytes)
			var err error
			for i := int(next.Add(1)) - 1; i < b.N && err == nil; i = int(next.Add(1)) - 1 {
				err = f(digests[i], stamp(content, i))
			}
			done <- err
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
