package appsuite

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// host is where one application runs: a folder and a port of its own, its processes, and the TLS
// front that the browser sees.
type host struct {
	dir     string // the application's own, empty at first
	modules string // npm's node_modules
	port    int    // where the application is to listen, of 127.0.0.1
	log     io.Writer
	start   func(*exec.Cmd) error

	running []program
	front   *http.Server
}

// program is a running program of the application.
type program struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it ends
}

// newHost finds a port. start starts a program that ends with this process.
func newHost(dir, modules string, output io.Writer, start func(*exec.Cmd) error) (*host, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	return &host{dir: dir, modules: modules, port: l.Addr().(*net.TCPAddr).Port, log: output, start: start}, nil
}

// run starts a program of the application in the host's folder.
func (h *host) run(env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = h.dir
	cmd.Env = append(append(os.Environ(), "HOME="+h.dir, "NO_UPDATE_NOTIFIER=1"), env...)
	cmd.Stdout, cmd.Stderr = h.log, h.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts is ended with it
	if err := h.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(name), err)
	}
	p := program{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait() // its status says nothing: stop kills it
		close(p.ended)
	}()
	h.running = append(h.running, p)
	return nil
}

// node starts a script of npm's with node.
func (h *host) node(script string, args ...string) error {
	return h.run(nil, "node", append([]string{filepath.Join(h.modules, script)}, args...)...)
}

// write writes a file into the host's folder. It takes the place of a link, and does not follow it.
func (h *host) write(name, text string) error {
	file := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// make runs a program to its end.
func (h *host) make(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out)
	}
	return nil
}

// link gives a folder of npm's a name in the host's folder.
func (h *host) link(of, name string) error {
	return os.Symlink(filepath.Join(h.modules, of), filepath.Join(h.dir, name))
}

// fronted waits for a page of the application and returns its address behind the TLS front.
func (h *host) fronted(ctx context.Context, path string) (string, error) {
	if err := h.await(ctx, http.DefaultTransport, fmt.Sprintf("http://127.0.0.1:%d%s", h.port, path)); err != nil {
		return "", err
	}
	origin, err := h.serve()
	return origin + path, err
}

// await waits until a page is there.
func (h *host) await(ctx context.Context, by http.RoundTripper, page string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept", "text/html")
		resp, err := by.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode < http.StatusBadRequest {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the application is not ready: %w", last)
		case <-h.last().ended:
			return errors.New("the application ended; its messages say why")
		case <-tick.C:
		}
	}
}

// last is the program that was started last.
func (h *host) last() program { return h.running[len(h.running)-1] }

// serve puts the TLS front before the application and returns its address, https://localhost:PORT.
func (h *host) serve() (string, error) {
	certificate, err := selfSigned()
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", h.port)})
	proxy.FlushInterval = -1
	quiet := log.New(io.Discard, "", 0) // browsers leave connections all the time
	proxy.ErrorLog = quiet
	h.front = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Forwarded-Proto", "https")
			proxy.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:  quiet, ReadHeaderTimeout: time.Minute,
	}
	go func() { _ = h.front.ServeTLS(l, "", "") }() // it ends with stop
	return fmt.Sprintf("https://localhost:%d", l.Addr().(*net.TCPAddr).Port), nil
}

// stop ends the application and its front, so that nothing answers any more.
func (h *host) stop() {
	if h.front != nil {
		_ = h.front.Close()
	}
	for _, p := range h.running {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // fails if all have ended
		<-p.ended
	}
	h.running = nil
}

// selfSigned makes a certificate for localhost that no authority has signed.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	name := pkix.Name{CommonName: "localhost"}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: name, Issuer: name, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
