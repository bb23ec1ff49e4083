package versity

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

const (
	program = "github.com/versity/versitygw/cmd/versitygw"
	version = "v1.8.0"
	key     = "AKIDEXAMPLE"
	secret  = "a-secret-for-tests"
	bucket  = "runs"
)

// build returns the program, which it builds unless it is there. Of two builders one waits for the other; a build that
// was cut off leaves nothing that counts.
func build(t *testing.T) string {
	t.Helper()
	goCommand := testlab.NeedProgram(t, "go")
	cache, err := os.UserCacheDir()
	testlab.Need(t, err == nil, fmt.Sprintf("a folder to keep the S3 server in: %v; set HOME", err))
	dir := filepath.Join(cache, "eidetic", "versitygw-"+version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // and with the process's end the kernel unlocks it, too
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "versitygw")
	if exec.CommandContext(t.Context(), path, "--version").Run() == nil {
		return path
	}
	parts := filepath.Join(dir, "build")
	if err := os.RemoveAll(parts); err != nil { // of a build that was cut off
		t.Fatal(err)
	}
	if err := os.Mkdir(parts, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), goCommand, "install", "-trimpath", "-ldflags=-s -w", program+"@"+version)
	cmd.Dir = parts // outside our module
	cmd.Env = append(os.Environ(), "GOBIN="+parts, "GOFLAGS=", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	testlab.Need(t, err == nil, fmt.Sprintf("the S3 server versitygw, which could not be built: %v: %.500s; try: go install %s@%s", err, out, program, version))
	if err := os.Rename(filepath.Join(parts, "versitygw"), path); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(parts); err != nil {
		t.Fatal(err)
	}
	return path
}

// server is a running gateway.
type server struct {
	endpoint string
	dir      string // of the buckets
	caFile   string
}

// start starts a gateway over a folder, with TLS by an authority of its own. The arguments in front, if any, are a
// command that starts it.
func start(t *testing.T, front ...string) server {
	t.Helper()
	path, dir := build(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // the gateway takes no open socket
	args := append(front, path, "--port", address, "--access", key, "--secret", secret, "--cert", certFile, "--key", keyFile, "--quiet", "--keep-alive",
		"posix", "--sidecar", t.TempDir(), dir)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "BUCKETS="+dir)
	cmd.Stderr = t.Output()
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended by itself
		<-ended
	})
	listening(t, address, ended)
	return server{"https://" + address, dir, certFile}
}

func listening(t *testing.T, address string, ended chan error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(testlab.Hang); ; {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			t.Fatalf("versitygw has ended: %v", err)
		case <-deadline:
			t.Fatalf("versitygw does not listen at %s: %v", address, err)
		}
	}
}

// certificate makes one for 127.0.0.1 that signs itself.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "S3"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	write(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return certFile, keyFile
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// config is of a store in the server, with credentials in a file.
func (s server) config(t *testing.T, prefix string) blob.S3Config {
	file := filepath.Join(t.TempDir(), "credentials")
	write(t, file, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", key, secret))
	return blob.S3Config{Endpoint: s.endpoint, Bucket: bucket, Prefix: prefix, Region: "us-east-1", CredentialsFile: file, CAFile: s.caFile}
}

func open(t *testing.T, c blob.S3Config) *blob.S3 {
	t.Helper()
	s, err := blob.OpenS3(t.Context(), c)
	if err != nil {
		t.Fatalf("OpenS3() = %v; want nil", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestS3(t *testing.T) {
	testlab.Long(t, "another store of files")
	gateway := start(t)
	stores := map[blob.Store]string{} // their folders
	n := 0
	blobtest.Suite{
		Open: func(t *testing.T) blob.Store {
			n++
			prefix := fmt.Sprintf("fleet/%d", n)
			s := open(t, gateway.config(t, prefix))
			stores[s] = filepath.Join(gateway.dir, bucket, prefix)
			return s
		},
		Large: 16<<20 + 1000,
		Damage: func(t *testing.T, s blob.Store, digest string) {
			path := filepath.Join(stores[s], digest)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content[10_000] ^= 1
			write(t, path, content)
		},
		Age: func(t *testing.T, s blob.Store, digest string, at time.Time) {
			if err := os.Chtimes(filepath.Join(stores[s], digest), at, at); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
	t.Run("wrong settings", func(t *testing.T) { gateway.wrongSettings(t) })
	t.Run("collect", func(t *testing.T) { gateway.collect(t) })
	t.Run("environment", func(t *testing.T) {
		c := gateway.config(t, "fleet/env")
		c.CredentialsFile = ""
		t.Setenv("AWS_ACCESS_KEY_ID", key)
		t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
		digest, content := blobtest.Content(1, 10)
		blobtest.Put(t, open(t, c), digest, content)
	})
}

// Each wrong setting is told with what to do about it.
func (gateway server) wrongSettings(t *testing.T) {
	credentialsFile := func(text string) string {
		path := filepath.Join(t.TempDir(), "credentials")
		write(t, path, []byte(text))
		return path
	}
	for _, c := range []struct {
		name string
		edit func(*blob.S3Config)
		want string
	}{
		{"no endpoint", func(c *blob.S3Config) { c.Endpoint = "127.0.0.1:9000" }, "https://HOST"},
		{"another bucket", func(c *blob.S3Config) { c.Bucket = "nowhere" }, "create it"},
		{"another key", func(c *blob.S3Config) {
			c.CredentialsFile = credentialsFile("[default]\naws_access_key_id=other\naws_secret_access_key=" + secret)
		}, "correct the access key"},
		{"another secret", func(c *blob.S3Config) {
			c.CredentialsFile = credentialsFile("[default]\naws_access_key_id=" + key + "\naws_secret_access_key=other")
		}, "correct the access key or the secret key"},
		{"another profile", func(c *blob.S3Config) { c.Profile = "nobody" }, "set aws_access_key_id"},
		{"no file of credentials", func(c *blob.S3Config) { c.CredentialsFile = filepath.Join(t.TempDir(), "none") }, "set aws_access_key_id"},
		{"an authority that is not trusted", func(c *blob.S3Config) { c.CAFile = "" }, "name its authority"},
		{"no authority in the file", func(c *blob.S3Config) { c.CAFile = c.CredentialsFile }, "has no certificate"},
		{"another region", func(c *blob.S3Config) { c.Region = "eu-north-9" }, "another region"},
	} {
		config := gateway.config(t, "")
		c.edit(&config)
		s, err := blob.OpenS3(t.Context(), config)
		if err == nil {
			s.Close()
		}
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
			t.Errorf("%s: OpenS3() = %v; want an error with %q", c.name, err, c.want)
		}
	}
}

// A head with a bucket in place of a folder receives uploads.
func TestUploadIntoS3(t *testing.T) {
	testlab.Long(t, "another store of files")
	gateway := start(t)
	s := open(t, gateway.config(t, "fleet"))
	u, err := blob.OpenUploads(blob.UploadsConfig{Store: s, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	head := httptest.NewServer(u.Handler(func(*http.Request) string { return "box" }))
	defer head.Close()
	for i, n := range []int{0, 1000, 16<<20 + 1} {
		digest, content := blobtest.Content(uint64(i), n)
		if err := blob.Send(t.Context(), head.Client(), head.URL+"/"+digest, nil, bytes.NewReader(content), int64(n), blob.Policy{}); err != nil {
			t.Fatalf("Send(%d bytes) = %v; want nil", n, err)
		}
		if got, err := blobtest.Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the bucket has %d bytes, %v; want the %d that were sent", len(got), err, n)
		}
	}
}

// Collect removes blobs and what a killed head has left of a large one.
func (gateway server) collect(t *testing.T) {
	config := gateway.config(t, "fleet/collect")
	s := open(t, config)
	var digests []string
	for i := range 4 {
		digest, content := blobtest.Content(uint64(i), 1000)
		blobtest.Put(t, s, digest, content)
		digests = append(digests, digest)
	}
	client, closeIdle := gateway.client(t)
	defer closeIdle()
	id, err := client.NewMultipartUpload(t.Context(), bucket, "fleet/collect/"+digests[0], minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutObjectPart(t.Context(), bucket, "fleet/collect/"+digests[0], id, 1, bytes.NewReader([]byte("half")), 4, minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
	referenced := func(yield func(string, error) bool) { yield(digests[2], nil) }
	tomorrow := time.Now().Add(24 * time.Hour)
	got, err := blob.Collect(t.Context(), s, referenced, tomorrow, 12*time.Hour, false, nil)
	if want := (blob.Collection{Removed: 3, RemovedBytes: 3000, Kept: 1, KeptBytes: 1000}); err != nil || got != want {
		t.Errorf("Collect() = %+v, %v; want %+v, nil", got, err, want)
	}
	if all := blobtest.List(t, s); len(all) != 1 || all[0].Digest != digests[2] {
		t.Errorf("List() = %v; want the one that is referred to", all)
	}
	for part := range client.ListIncompleteUploads(t.Context(), bucket, "fleet/collect/", true) {
		t.Errorf("there is an unfinished upload %+v; want none", part)
	}
}

// client is the library itself.
func (gateway server) client(t *testing.T) (minio.Core, func()) {
	t.Helper()
	transport, err := minio.DefaultTransport(true)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(gateway.caFile)
	if err != nil {
		t.Fatal(err)
	}
	transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	client, err := minio.New(gateway.endpoint[len("https://"):], &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, ""), Secure: true, Transport: transport, Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return minio.Core{Client: client}, transport.CloseIdleConnections
}

// A server that is full says so, and what was put stays whole.
func TestS3WithoutRoom(t *testing.T) {
	testlab.Long(t, "another store of files")
	testlab.NeedRoot(t)
	unshare := testlab.NeedProgram(t, "unshare")
	s := open(t, start(t, unshare, "--mount", "sh", "-c", `mount -t tmpfs -o size=1m eidetic-test "$BUCKETS" && mkdir "$BUCKETS/runs" && exec "$0" "$@"`).config(t, ""))
	digest, content := blobtest.Content(1, 100_000)
	blobtest.Put(t, s, digest, content)
	large, more := blobtest.Content(2, 3<<20)
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	if err := s.Put(ctx, large, int64(len(more)), bytes.NewReader(more)); !errors.Is(err, blob.ErrNoRoom) {
		t.Errorf("Put() without room = %v; want ErrNoRoom", err)
	}
	if _, has, err := s.Has(t.Context(), large); has || err != nil {
		t.Errorf("Has() = %v, %v; want false, nil", has, err)
	}
	if got, err := blobtest.Read(t.Context(), s, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v; want the content that was put before", len(got), err)
	}
}

// TestBuild: two builders at once build once, what a cut-off build or a power cut left is built again, and what is
// whole is kept.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	write(t, filepath.Join(dir, "go"), []byte("#!/bin/sh\necho >>"+calls+"\nprintf '#!/bin/sh\\n' >$GOBIN/versitygw && chmod +x $GOBIN/versitygw\n"))
	if err := os.Chmod(filepath.Join(dir, "go"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", dir)
	built := func(want int) {
		t.Helper()
		if text, err := os.ReadFile(calls); err != nil || len(text) != want {
			t.Errorf("it was built %d times, %v; want %d", len(text), err, want)
		}
	}
	t.Run("at once", func(t *testing.T) {
		for range 2 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				build(t)
			})
		}
	})
	built(1)
	path := build(t)
	write(t, path, nil) // as a power cut leaves it
	if err := os.MkdirAll(filepath.Join(filepath.Dir(path), "build", "half"), 0o700); err != nil {
		t.Fatal(err)
	}
	if build(t) != path {
		t.Error("build() = another path than before")
	}
	built(2)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 2 {
		t.Errorf("the folder has %q, %v; want the program and its lock", left, err)
	}
}
