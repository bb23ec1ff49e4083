package blob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/blob/blobtest"
	"eidetic/internal/rigs/testlab"
)

// cutting is a connection that breaks after some bytes in either direction.
type cutting struct {
	net.Conn
	left *atomic.Int64
}

func (c cutting) cut(n int) bool { return c.left.Add(-int64(n)) < 0 }

func (c cutting) Write(p []byte) (int, error) {
	if left := c.left.Load(); int64(len(p)) > left {
		n, _ := c.Conn.Write(p[:max(left, 0)])
		c.Conn.Close()
		return n, errors.New("cut")
	}
	n, err := c.Conn.Write(p)
	c.cut(n)
	return n, err
}

func (c cutting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.cut(n) {
		c.Conn.Close()
		return 0, errors.New("cut")
	}
	return n, err
}

// Connections break at any byte, of requests and of answers.
func TestSendOverCutConnections(t *testing.T) {
	h := newHead(t, nil)
	seed := uint64(1000)
	rapid.Check(t, func(rt *rapid.T) {
		seed++
		digest, content := blobtest.Content(seed, rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(1<<20, 1<<20+400_000)).Draw(rt, "size"))
		cuts := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(0, 1<<20)), 0, 6).Draw(rt, "cuts")
		dials := 0
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			dials++
			if err != nil || dials > len(cuts) {
				return c, err
			}
			left := new(atomic.Int64)
			left.Store(int64(cuts[dials-1]))
			return cutting{c, left}, nil
		}}}
		defer client.CloseIdleConnections()
		if err := blob.Send(t.Context(), client, h.address(digest), nil, bytes.NewReader(content), int64(len(content)), fast()); err != nil {
			rt.Fatalf("Send() over connections that are cut at %v = %v; want nil", cuts, err)
		}
		got, err := blobtest.Read(t.Context(), h.store, digest)
		if err != nil || !bytes.Equal(got, content) {
			rt.Fatalf("the head has %d bytes, %v; want the %d that were sent", len(got), err, len(content))
		}
	})
	if left := h.staged(t); len(left) != 0 {
		t.Errorf("the staging folder has %v; want nothing", left)
	}
}

// repeating sends requests twice, and old ones again later, as a broken network or client would.
type repeating struct {
	to     http.RoundTripper
	random *rand.Rand
	mu     sync.Mutex
	old    []*http.Request
	bodies [][]byte
	late   sync.WaitGroup
}

func (r *repeating) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	var body []byte
	if q.Body != nil {
		var err error
		if body, err = io.ReadAll(q.Body); err != nil {
			r.mu.Unlock()
			return nil, err
		}
		q.Body.Close()
	}
	// A piece only, so that there are many.
	if q.Method == http.MethodPatch && len(body) > 1 && r.random.IntN(3) > 0 {
		body = body[:1+r.random.IntN(len(body)-1)]
		q = q.Clone(q.Context())
		q.ContentLength = int64(len(body))
	}
	r.old, r.bodies = append(r.old, q), append(r.bodies, body)
	var again []int
	for r.random.IntN(2) == 0 {
		again = append(again, r.random.IntN(len(r.old)))
	}
	for _, i := range again {
		q, body := r.old[i], r.bodies[i]
		r.late.Go(func() {
			if response, err := r.to.RoundTrip(withBody(context.WithoutCancel(q.Context()), q, body)); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	r.mu.Unlock()
	return r.to.RoundTrip(withBody(q.Context(), q, body))
}

func withBody(ctx context.Context, q *http.Request, body []byte) *http.Request {
	q = q.Clone(ctx)
	if body != nil {
		q.Body = io.NopCloser(bytes.NewReader(body))
	}
	return q
}

func TestRepeatedAndLateRequests(t *testing.T) {
	h := newHead(t, nil)
	for seed := range uint64(10) {
		digest, content := blobtest.Content(seed, 40_000+int(seed)*100_000)
		network := &repeating{to: h.Client().Transport, random: rand.New(rand.NewPCG(seed, 1))}
		err := blob.Send(t.Context(), &http.Client{Transport: network}, h.address(digest), nil, bytes.NewReader(content), int64(len(content)), fast())
		network.late.Wait()
		if err != nil {
			t.Errorf("Send() with requests that come twice = %v; want nil", err)
		}
		arrived(t, h, digest, content)
	}
}

// Two uploads of one blob do not mix, of one owner or of two, and one with wrong content harms nobody else's.
func TestUploadsAtOnce(t *testing.T) {
	h := newHead(t, nil)
	for seed := range uint64(3) {
		digest, content := blobtest.Content(seed, 3<<20)
		_, other := blobtest.Content(seed+100, 3<<20)
		var group sync.WaitGroup
		for i := range 6 {
			group.Go(func() {
				from, box := content, fmt.Sprint("box", i/2)
				if i == 5 {
					from, box = other, "liar"
				}
				err := blob.Send(t.Context(), h.Client(), h.address(digest), http.Header{"Box": {box}}, bytes.NewReader(from), 3<<20, fast())
				if err != nil && !(i == 5 && errors.Is(err, blob.ErrDigest)) {
					t.Errorf("Send() of %s beside others = %v; want nil", box, err)
				}
			})
		}
		group.Wait()
		if got, err := blobtest.Read(t.Context(), h.store, digest); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the head has %d bytes, %v; want the content", len(got), err)
		}
	}
}

// Two heads that share their folders, behind one address that takes them by turns, do not mix uploads either.
func TestTwoHeadsWithOneFolder(t *testing.T) {
	h := newHead(t, func(c *blob.UploadsConfig) { c.Silence = 10 * time.Second }) // a request waits in the middle below
	u, _, err := uploads(h.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	second := httptest.NewServer(u.Handler(owner))
	defer second.Close()
	var turn atomic.Int64
	client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if turn.Add(1)%2 == 0 {
			r = r.Clone(r.Context())
			r.URL.Host = second.Listener.Addr().String()
		}
		return h.Client().Transport.RoundTrip(r)
	})}
	for seed := range uint64(4) {
		digest, content := blobtest.Content(seed, 1<<20+1)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if err := blob.Send(t.Context(), client, h.address(digest), nil, bytes.NewReader(content), 1<<20+1, fast()); err != nil {
					t.Errorf("Send() to two heads = %v; want nil", err)
				}
			})
		}
		group.Wait()
		if got, err := blobtest.Read(t.Context(), h.store, digest); err != nil || !bytes.Equal(got, content) {
			t.Errorf("the heads have %d bytes, %v; want the content", len(got), err)
		}
	}
	// While a request of one head is in the middle, the other head keeps off.
	digest, content := blobtest.Content(100, 1<<20)
	body, more := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, h.address(digest), body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/offset+octet-stream"}, "Upload-Offset": {"0"}, "Upload-Length": {strconv.Itoa(len(content))}}
	first := make(chan error, 1)
	go func() {
		response, err := h.Client().Do(r)
		if err == nil {
			err = response.Body.Close()
		}
		first <- err
	}()
	if _, err := more.Write(content[:1000]); err != nil {
		t.Fatal(err)
	}
	testlab.Await(t, "the first bytes", func() bool { return stagedBytes(h.dir) > 0 })
	other := &head{Server: second, dir: h.dir}
	says(t, "look at the other head", headOf(t, other, digest, ""), "423 Upload-Offset=")
	late, _ := patch(t, other, digest, 0, len(content), content[:10], "")
	says(t, "begin at the other head", late, "423 Upload-Offset=")
	if _, err := more.Write(content[1000:]); err != nil {
		t.Fatal(err)
	}
	more.Close()
	if err := <-first; err != nil {
		t.Error(err)
	}
	arrived(t, h, digest, content)
}

// A request that is silent loses its upload to the next one, and what it sent is not lost.
func TestSilentRequestGivesWay(t *testing.T) {
	h := newHead(t, func(c *blob.UploadsConfig) { c.Silence = 50 * time.Millisecond })
	digest, content := blobtest.Content(1, 2<<20)
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "PATCH /x/%s HTTP/1.1\r\nHost: h\r\nContent-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nUpload-Length: %d\r\nContent-Length: %d\r\n\r\n",
		digest, len(content), len(content))
	if _, err := c.Write(content[:1<<20]); err != nil {
		t.Fatal(err)
	}
	testlab.Await(t, "the first half", func() bool { return stagedBytes(h.dir) == 1<<20 })
	says(t, "look", headOf(t, h, digest, ""), "200 Upload-Offset=1048576")
	if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, failing{bytes.NewReader(content), 3 << 20, nil}, 2<<20, fast()); err != nil {
		t.Errorf("Send() after a silent request = %v; want nil", err)
	}
	arrived(t, h, digest, content)
}

func stagedBytes(dir string) (n int64) {
	names, _ := filepath.Glob(filepath.Join(dir, "staging", "*", "*"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// process runs the test binary as a head, or as a box that sends.
func process(t *testing.T, env ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
}

// watched is content that tells how much of it was read.
type watched struct {
	io.ReaderAt
	read *atomic.Int64
	at   func(read int64)
}

func (s watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p, off)
	s.at(s.read.Add(int64(n)))
	return n, err
}

// The head is killed again and again while a box sends; the box goes on where the head was.
func TestHeadIsKilled(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	serve := func() *exec.Cmd {
		cmd, out := process(t, serveEnv+"="+dir, serveEnv+"_ADDR="+address)
		if !out.Scan() {
			t.Fatalf("the head does not start: %v", out.Err())
		}
		return cmd
	}
	const size, kills = 6 << 20, 4
	digest, content := blobtest.Content(1, size)
	head := serve()
	defer func() { kill(t, head) }()
	var read atomic.Int64
	killed := 0
	from := watched{bytes.NewReader(content), &read, func(n int64) {
		if killed < kills && n > int64(killed+1)*size/(kills+2) {
			killed++
			kill(t, head)
			head = serve()
		}
	}}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if err := blob.Send(t.Context(), client, "http://"+address+"/"+digest, nil, from, size, fast()); err != nil {
		t.Fatalf("Send() to a head that is killed = %v; want nil", err)
	}
	if killed != kills || read.Load() > 2*size {
		t.Errorf("the head was killed %d times and %d bytes of %d were read; want %d times, and not all anew each time", killed, read.Load(), size, kills)
	}
	f, err := blob.OpenFolder(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := blobtest.Read(t.Context(), f, digest); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the head has %d bytes, %v; want the content", len(got), err)
	}
}

// A box is killed while it sends; what had arrived is not sent again.
func TestBoxIsKilled(t *testing.T) {
	h := newHead(t, nil)
	digest, content := blobtest.Content(1, 6<<20)
	path := filepath.Join(t.TempDir(), "screen.reel")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	box, out := process(t, sendEnv+"="+h.address(digest), sendEnv+"_FILE="+path)
	if !out.Scan() || out.Text() != "half" {
		t.Fatalf("the box says %q, %v; want half", out.Text(), out.Err())
	}
	testlab.Await(t, "half of the file", func() bool { return stagedBytes(h.dir) > 1<<20 })
	kill(t, box)
	var read atomic.Int64
	from := watched{bytes.NewReader(content), &read, func(int64) {}}
	if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, from, 6<<20, fast()); err != nil {
		t.Fatalf("Send() = %v; want nil", err)
	}
	if read.Load() > 5<<20 {
		t.Errorf("%d bytes were sent again of %d; want only what had not arrived", read.Load(), 6<<20)
	}
	arrived(t, h, digest, content)
}

// sendAsBox sends a file and stops in the middle until it is killed.
func sendAsBox(url string) {
	f, err := os.Open(os.Getenv(sendEnv + "_FILE"))
	if err == nil {
		var read atomic.Int64
		half := watched{f, &read, func(n int64) {
			if n > 3<<20 {
				fmt.Println("half")
				select {} // until it is killed
			}
		}}
		err = blob.Send(context.Background(), http.DefaultClient, url, nil, half, 6<<20, blob.Policy{Silence: time.Hour})
	}
	fmt.Fprintln(os.Stderr, "the box was not killed:", err)
	os.Exit(1)
}

const sendEnv = "EIDETIC_TEST_SEND"

// An owner's unfinished uploads are bounded: the oldest gives way, others' do not.
func TestUploadsAreBounded(t *testing.T) {
	h := newHead(t, func(c *blob.UploadsConfig) { c.PerOwner, c.OwnerBytes, c.Age = 3, 1000, time.Hour })
	begin := func(box string, seed uint64, length int) string {
		digest, content := blobtest.Content(seed, length)
		r, text := patch(t, h, digest, 0, length, content[:10], box)
		if r.StatusCode != http.StatusNoContent {
			t.Fatalf("begin an upload: %d %s; want 204", r.StatusCode, text)
		}
		return digest
	}
	other := begin("b", 9, 900)
	var all []string
	for i := range uint64(5) {
		all = append(all, begin("a", i, 100))
		past := time.Now().Add(time.Duration(i)*time.Minute - 30*time.Minute)
		for _, name := range h.staged(t) {
			if strings.Contains(name, all[i]) {
				if err := os.Chtimes(name, past, past); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want := []string{"404", "404", "200", "200", "200"}
	for i, digest := range all {
		says(t, fmt.Sprintf("upload %d of 5", i), headOf(t, h, digest, "a"), want[i])
	}
	large := begin("a", 20, 850)
	says(t, "the last before a large one", headOf(t, h, all[4], "a"), "200")
	says(t, "the one before", headOf(t, h, all[3], "a"), "404")
	says(t, "the large one", headOf(t, h, large, "a"), "200")
	says(t, "another box's", headOf(t, h, other, "b"), "200")
	digest, content := blobtest.Content(21, 1001)
	r, _ := patch(t, h, digest, 0, 1001, content[:10], "a")
	says(t, "more than an owner may have", r, "413")
	if err := h.uploads.Sweep(time.Now().Add(50 * time.Minute)); err != nil || len(h.staged(t)) != 2 {
		t.Errorf("Sweep(in 50 min) = %v and leaves %v; want nil and the two that are young", err, h.staged(t))
	}
	if err := h.uploads.Sweep(time.Now().Add(2 * time.Hour)); err != nil || len(h.staged(t)) != 0 {
		t.Errorf("Sweep(in 2 h) = %v and leaves %v; want nil and nothing", err, h.staged(t))
	}
}

// A head whose disk is for other things says so and keeps what it has.
func TestNoRoom(t *testing.T) {
	h := newHead(t, func(c *blob.UploadsConfig) { c.Reserve = 1 << 60 })
	digest, content := blobtest.Content(1, 100)
	r, text := patch(t, h, digest, 0, 100, content, "a")
	says(t, "no room", r, "507 Upload-Offset=0")
	if !strings.Contains(text, "/problems/upload-no-room") {
		t.Errorf("the answer is %s; want a problem", text)
	}
	p := fast()
	p.Patience = 1
	if err := blob.Send(t.Context(), h.Client(), h.address(digest), nil, bytes.NewReader(content), 100, p); !errors.Is(err, blob.ErrNoRoom) {
		t.Errorf("Send() = %v; want ErrNoRoom", err)
	}
}

// A lock on a file that has left its path is of something else: of a blob.
func TestLockOfAnUploadThatBecameABlob(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "upload")
	over := make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() { // another head, which finishes the upload and begins the next one
		for {
			select {
			case <-over:
				return
			default:
			}
			f, err := blob.LockFile(path, os.O_CREATE)
			if err != nil {
				continue
			}
			if err := os.Rename(path, filepath.Join(dir, "blob")); err != nil {
				t.Error(err)
			}
			f.Close()
		}
	})
	for range 100_000 {
		f, err := blob.LockFile(path, 0)
		if err != nil {
			continue
		}
		mine, errMine := f.Stat()
		at, errAt := os.Stat(path)
		if errMine != nil || errAt != nil || !os.SameFile(mine, at) {
			t.Errorf("the locked file is not the one at its path: %v, %v", errMine, errAt)
			f.Close()
			break
		}
		f.Close()
	}
	close(over)
	others.Wait()
}
