package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

var made = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC) // constant

// whole is a backup of these files, which are in order.
func whole(t testing.TB, m Manifest, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	m.Made, m.Software = made, "appliance test"
	w, err := NewWriter(&b, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if err := w.Bytes(name, []byte("new "+name), made); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func files() []string {
	return []string{"archives/shop.wacz", "queue.db", "runs/a/run.json", "runs/a/trials/001/reel", "runs/a-b/run.json"}
}

// old fills a data folder with the state before.
func old(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	for _, name := range []string{"runs/old/run.json", "queue.db", "queue.db-wal", "index.db", "token", "ca/key.pem", "appliance.yaml"} {
		path := filepath.Join(data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("old "+name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("runs/old", filepath.Join(data, "latest")); err != nil {
		t.Fatal(err)
	}
	return data
}

// state lists the files of a data folder with their content.
func state(t *testing.T, data string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := []byte("link")
		if d.Type().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		name, _ := filepath.Rel(data, path)
		all = append(all, name+"="+string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

func TestRestore(t *testing.T) {
	data := old(t)
	m, err := Stage(bytes.NewReader(whole(t, Manifest{Runs: 2}, files()...)), data, nil)
	if err != nil || m.Runs != 2 {
		t.Fatalf("Stage() = %+v, %v; want 2 runs", m, err)
	}
	if done, err := Apply(data); !done || err != nil {
		t.Fatalf("Apply() = %v, %v; want true", done, err)
	}
	want := `appliance.yaml=old appliance.yaml
archives/shop.wacz=new archives/shop.wacz
ca/key.pem=old ca/key.pem
queue.db=new queue.db
runs/a/run.json=new runs/a/run.json
runs/a/trials/001/reel=new runs/a/trials/001/reel
runs/a-b/run.json=new runs/a-b/run.json
token=old token`
	if got := state(t, data); got != want {
		t.Errorf("the data folder has\n%s\nwant\n%s", got, want)
	}
	if info, err := os.Stat(filepath.Join(data, "archives/shop.wacz")); err != nil || !info.ModTime().Equal(made) {
		t.Errorf("a recording's time is %v (%v), want that of the backup: its ETag is made of it", info.ModTime(), err)
	}
	if done, err := Apply(data); done || err != nil {
		t.Errorf("a second Apply() = %v, %v; want false", done, err)
	}
}

// The secrets of a backup that has some take the place of those of the machine.
func TestRestoreOfSecrets(t *testing.T) {
	data := old(t)
	if _, err := Stage(bytes.NewReader(whole(t, Manifest{Secrets: true}, "ca/cert.pem", "token")), data, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(data); err != nil {
		t.Fatal(err)
	}
	if got, want := state(t, data), "appliance.yaml=old appliance.yaml\nca/cert.pem=new ca/cert.pem\ntoken=new token"; got != want {
		t.Errorf("the data folder has\n%s\nwant\n%s", got, want)
	}
}

// kill is where TestRestoreSurvivesKills restores, in a process of its own.
const kill = "EIDETIC_TEST_RESTORE_IN"

// A restore that is killed anywhere leaves the old state or the new one.
func TestRestoreSurvivesKills(t *testing.T) {
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("runs/r%03d/run.json", i))
	}
	content := whole(t, Manifest{}, append([]string{"queue.db"}, many...)...)
	if data := os.Getenv(kill); data != "" {
		fmt.Println("begins")
		if _, err := Stage(bytes.NewReader(content), data, nil); err != nil {
			t.Fatal(err)
		}
		fmt.Println("staged")
		if _, err := Apply(data); err != nil {
			t.Fatal(err)
		}
		fmt.Println("applied")
		return
	}
	outcomes := map[string]int{}
	for i := range 12 {
		data := old(t)
		before := state(t, data)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), kill+"="+data)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A third each is killed a while after its beginning, after the staging, and just before its end.
		awaited := []string{"begins", "staged", "applied"}[i%3]
		var said []byte
		for piece := make([]byte, 1); !bytes.Contains(said, []byte(awaited)); {
			n, err := out.Read(piece)
			if said = append(said, piece[:n]...); err != nil {
				t.Fatalf("it said %q, and ended: %v", said, err)
			}
		}
		time.AfterFunc(time.Duration(i)*600*time.Microsecond, func() { _ = cmd.Process.Kill() })
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // it was killed
		if _, err := Apply(data); err != nil {
			t.Fatal(err)
		}
		switch got := state(t, data); {
		case got == before:
			outcomes["old"]++
		case strings.Count(got, "=new runs/r") == 200 && strings.Contains(got, "queue.db=new") && !strings.Contains(got, "runs/old") &&
			!strings.Contains(got, "queue.db-wal") && !strings.Contains(got, "index.db"):
			outcomes["new"]++
		default:
			t.Fatalf("killed after %q and %d µs: neither the old state nor the new one:\n%s", awaited, i*600, got)
		}
	}
	if outcomes["new"] < 8 { // two thirds are killed after the staging
		t.Errorf("outcomes %v; want the new state after every staging", outcomes)
	}
}

// An Apply that stops after any of its renames is finished by the next.
func TestApplyGoesOn(t *testing.T) {
	data := old(t)
	if _, err := Stage(bytes.NewReader(whole(t, Manifest{}, files()...)), data, nil); err != nil {
		t.Fatal(err)
	}
	// As a killed Apply leaves it: old names moved away, one new name there.
	out := filepath.Join(data, replaced)
	if err := errors.Join(os.Mkdir(out, 0o700), os.Rename(filepath.Join(data, "queue.db-wal"), filepath.Join(out, "queue.db-wal")),
		os.Rename(filepath.Join(data, "queue.db"), filepath.Join(out, "queue.db")),
		os.Rename(filepath.Join(data, ready, "queue.db"), filepath.Join(data, "queue.db"))); err != nil {
		t.Fatal(err)
	}
	if done, err := Apply(data); !done || err != nil {
		t.Fatalf("Apply() = %v, %v; want true", done, err)
	}
	if got := state(t, data); strings.Contains(got, "runs/old") || !strings.Contains(got, "queue.db=new") || strings.Contains(got, "restore") {
		t.Errorf("the data folder has\n%s", got)
	}
}

// forged is a tar file of headers, each with its content; sums are those of its files.
func forged(t *testing.T, manifest string, entries ...*tar.Header) []byte {
	t.Helper()
	var b, sums bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h *tar.Header, content string) {
		h.Size, h.Mode = int64(len(content)), 0o644
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content[:h.Size]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(content)), h.Name)
	}
	add(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName}, manifest)
	for _, h := range entries {
		add(h, "x")
	}
	add(&tar.Header{Typeflag: tar.TypeReg, Name: sumsName}, sums.String())
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileBackups(t *testing.T) {
	const plain = `{"format":"eidetic/backup/1"}`
	file := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name} }
	good := whole(t, Manifest{}, files()...)
	changed := bytes.Clone(good)
	changed[bytes.Index(changed, []byte("new runs/a/run.json"))] = 'N'
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":                 {nil, "it is empty"},
		"not a tar file":        {bytes.Repeat([]byte("PK"), 600), "no backup"},
		"another tar file":      {forged(t, plain)[1024:], "not a backup.json"},
		"cut off":               {good[:len(good)/2], "cut off"},
		"without its sums":      {good[:bytes.Index(good, []byte(sumsName))], "cut off"},
		"a changed byte":        {changed, "does not have the checksums"},
		"a later version":       {forged(t, `{"format":"eidetic/backup/2"}`), "another version"},
		"a manifest of garbage": {forged(t, `{"runs":"x"}`), "backup.json"},
		"negative numbers":      {forged(t, `{"format":"eidetic/backup/1","bytes":-1}`), "negative"},
		"more than fits":        {forged(t, `{"format":"eidetic/backup/1","bytes":4611686018427387904}`), "there is room for"},
		"way up":                {forged(t, plain, file("../token")), "not the name of a file"},
		"way up in a run":       {forged(t, plain, file("runs/a/../../token")), "not the name of a file"},
		"absolute":              {forged(t, plain, file("/etc/passwd")), "not the name of a file"},
		"another file":          {forged(t, plain, file("restore.json")), "not a file that a backup has"},
		"a hidden file":         {forged(t, plain, file("runs/a/.lock")), "not a file of a run"},
		"a name with orders":    {forged(t, plain, file("runs/a/\x1b[2J")), "not the name of a file"},
		"a deep folder":         {forged(t, plain, file("runs/"+strings.Repeat("a/", 12)+"b")), "not a file of a run"},
		"a secret unannounced":  {forged(t, plain, file("token")), "is a secret"},
		"twice the same":        {forged(t, plain, file("queue.db"), file("queue.db")), "there twice"},
		"a file as a folder":    {forged(t, plain, file("runs/a/b"), file("runs/a/b/c")), "there twice"},
		"a symbolic link":       {forged(t, plain, &tar.Header{Typeflag: tar.TypeSymlink, Name: "runs/a/l", Linkname: "/"}), "a link, a folder or a device"},
		"a hard link":           {forged(t, plain, &tar.Header{Typeflag: tar.TypeLink, Name: "runs/a/l", Linkname: "/etc/shadow"}), "a link, a folder or a device"},
		"a device":              {forged(t, plain, &tar.Header{Typeflag: tar.TypeBlock, Name: "runs/a/l"}), "a link, a folder or a device"},
		"a folder":              {forged(t, plain, &tar.Header{Typeflag: tar.TypeDir, Name: "runs/a/"}), "a link, a folder or a device"},
		"a sparse bomb":         {sparse(), "sparse"},
		"more after the end": {append(bytes.TrimRight(bytes.Clone(good), "\x00"), append(make([]byte, 512-len(bytes.TrimRight(good, "\x00"))%512),
			forged(t, plain)...)...), "more after"},
	} {
		t.Run(name, func(t *testing.T) {
			data := old(t)
			before := state(t, data)
			_, err := Stage(bytes.NewReader(c.content), data, nil)
			if !errors.Is(err, ErrHostile) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Stage() = %v, want ErrHostile that says %q", err, c.says)
			}
			if got := state(t, data); got != before {
				t.Errorf("the data folder has\n%s\nwant what it had:\n%s", got, before)
			}
		})
	}
}

// sparse is a tar file whose second file says that it is a terabyte of holes (GNU's format 1.0).
func sparse() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	manifest := `{"format":"eidetic/backup/1"}`
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Size: int64(len(manifest)), Mode: 0o644}) // into memory
	_, _ = io.WriteString(w, manifest)
	_ = w.Flush()
	record := func(key, value string) string {
		body := " " + key + "=" + value + "\n"
		n := len(body) + 2
		return fmt.Sprint(n) + body
	}
	pax := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "runs/a/b") +
		record("GNU.sparse.realsize", "1099511627776")
	header := func(kind byte, name string, size int) {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000644\x000000000\x000000000\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00%011o\x00", size, 0))
		copy(h[148:], "        ")
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(h)
	}
	header('x', "pax", len(pax))
	b.WriteString(pax)
	b.Write(make([]byte, (512-len(pax)%512)%512))
	header('0', "runs/a/b", 512)
	sparseMap := make([]byte, 512)
	copy(sparseMap, "0\n")
	b.Write(sparseMap)
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

// What check refuses changes nothing, and neither does a reader that fails.
func TestRefusedByCheck(t *testing.T) {
	data := old(t)
	before := state(t, data)
	no := errors.New("no")
	_, err := Stage(bytes.NewReader(whole(t, Manifest{}, files()...)), data, func(string, Manifest) error { return no })
	if !errors.Is(err, no) || state(t, data) != before {
		t.Errorf("Stage() = %v, the folder has\n%s", err, state(t, data))
	}
}

func TestWriterRefusesDisorder(t *testing.T) {
	w, err := NewWriter(io.Discard, Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Bytes("runs/b/run.json", nil, made), w.Bytes("runs/a/run.json", nil, made)); err == nil {
		t.Error("a file out of order was written")
	}
}

// FuzzRead reads whatever comes with bounded memory, and never says yes to what it cannot have written.
func FuzzRead(f *testing.F) {
	f.Add(whole(f, Manifest{Runs: 1}, files()...))
	f.Add(whole(f, Manifest{Secrets: true}, "ca/cert.pem", "token"))
	f.Add(sparse())
	f.Fuzz(func(t *testing.T, content []byte) {
		defer testlab.Input(t)()
		var names []string
		_, err := Read(bytes.NewReader(content), 1<<20, func(m Manifest, e Entry) error {
			names = append(names, e.Name)
			n, err := io.Copy(io.Discard, e.Content)
			if n > int64(len(content)) {
				t.Errorf("%s has %d bytes, the backup %d", e.Name, n, len(content))
			}
			return err
		})
		if err != nil {
			return
		}
		for i, name := range names {
			if err := CheckName(name, true); err != nil || i > 0 && !follows(names[i-1], name) {
				t.Errorf("accepted the names %q: %v", names, err)
			}
		}
	})
}
