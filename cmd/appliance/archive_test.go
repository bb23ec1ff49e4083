package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// shopArchive writes an archive with a page, a script and a picture.
func shopArchive(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.wacz")
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var list []*lab.Exchange
	for i, x := range [][3]string{
		{"https://shop.example/", "text/html", "<script src=/a.js></script>"},
		{"https://shop.example/a.js", "text/javascript", "1"},
		{"https://ads.example/x.png", "image/png", "png"},
	} {
		list = append(list, &lab.Exchange{
			Order: i, Method: "GET", URL: x[0], Status: 200, Protocol: "h2", TLS: "tls/1.3", Wall: wall, Start: time.Duration(i) * time.Second, FirstByte: 5 * time.Millisecond,
			Response: lab.Message{Header: []lab.HeaderField{{Name: "content-type", Value: x[1]}}, Body: []byte(x[2])},
			Chunks:   []lab.Chunk{{At: 7 * time.Millisecond, Bytes: len(x[2])}},
		})
	}
	if err := archive.Save(path, archive.New(list, nil, nil, archive.CreateOptions{Wall: wall})); err != nil {
		t.Fatal(err)
	}
	return path
}

// appliance runs the command line and returns what it printed.
func archiveCommand(args ...string) (status int, out, errs string) {
	var o, e bytes.Buffer
	status = run(context.Background(), append([]string{"archive"}, args...), &streams{strings.NewReader(""), &o, &e})
	return status, o.String(), e.String()
}

func TestArchiveCommands(t *testing.T) {
	path := shopArchive(t)
	dir := filepath.Dir(path)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("new.js"), []byte("2+2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("junk.wacz"), []byte("junk, and more of it"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"meta.warc": "WARC/1.0\r\nWARC-Type: metadata\r\nContent-Length: 1\r\n\r\nx\r\n\r\n",
		"old.arc":   "filedesc://a.arc 0.0.0.0 20080101000000 text/plain 73\n",
		"data.har": `{"log":{"entries":[{"request":{"method":"GET","url":"data:,x"},"response":{"status":200}},` +
			`{"request":{"method":"GET","url":"https://shop.example/"},"response":{"status":200,"content":{"text":"x"}}}]}}`,
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		args   []string
		status int
		says   string // in what is printed
	}{
		{[]string{"ls", path}, exitGood, "3 of 3 exchanges, 2 hosts"},
		{[]string{"ls", path, "--url", "*.js"}, exitGood, "1 of 3 exchanges"},
		{[]string{"cat", path, "1"}, exitGood, "1"},
		{[]string{"cat", path, "1", "--headers"}, exitGood, "content-type: text/javascript"},
		{[]string{"cat", path, "example"}, exitUsage, "name one by its number"},
		{[]string{"cat", path, "99"}, exitUsage, "no exchange is"},
		{[]string{"verify", path}, exitGood, "score 1.000"},
		{[]string{"verify", in("none.wacz")}, exitUsage, "no such file"},
		{[]string{"verify", in("junk.wacz")}, exitUsage, "not a WACZ, WARC, HAR or Web Page Replay"},
		{[]string{"rm", path}, exitUsage, "say what to remove"},
		{[]string{"rm", path, "--url", "nothing"}, exitUsage, "no exchange matches"},
		{[]string{"rm", path, "--url", "*ads.example*", "--dry-run"}, exitGood, "would be removed"},
		{[]string{"export", path, "--out", in("a.har")}, exitGood, "3 exchanges"},
		{[]string{"export", path, "--out", in("a.har")}, exitUsage, "exists"},
		{[]string{"export", path, "--out", in("a.warc.gz")}, exitGood, "3 exchanges"},
		{[]string{"export", path, "--out", in("a.txt")}, exitUsage, "say --format"},
		{[]string{"import", in("b.wacz"), in("a.har")}, exitGood, "3 exchanges"},
		{[]string{"import", in("c.wacz"), in("a.warc.gz")}, exitGood, "3 exchanges"},
		{[]string{"import", in("e.wacz"), in("meta.warc")}, exitFailed, "a WARC of 1 records (1 metadata)"},
		{[]string{"import", in("e.wacz"), in("data.har")}, exitGood, "1 × left out: the scheme \"data\""},
		{[]string{"verify", in("e.wacz")}, exitGood, "1 × left out: the scheme \"data\""},
		{[]string{"import", in("f.wacz"), in("old.arc")}, exitUsage, "this is an ARC file"},
		{[]string{"merge", in("d.wacz"), in("b.wacz"), in("c.wacz")}, exitGood, "3 exchanges"}, // both are one recording
		{[]string{"merge", in("d.wacz"), in("b.wacz")}, exitUsage, "exists"},
		{[]string{"rm", path, "--url", "*ads.example*"}, exitGood, "1 of 3 exchanges removed"},
		{[]string{"edit", path, "--id", "1"}, exitUsage, "say what to change"},
		{[]string{"edit", path, "--id", "1", "--set", "nonsense"}, exitUsage, "Name: value"},
		{
			[]string{
				"edit",
				path,
				"--id",
				"1",
				"--body",
				in("new.js"),
				"--set",
				"X-A: b",
				"--drop",
				"content-type",
				"--first-byte",
				"50ms",
			},
			exitGood,
			"1 of 2 exchanges edited",
		},
		{[]string{"cat", path, "1"}, exitGood, "2+2"},
		{[]string{"cat", path, "1", "--headers"}, exitGood, "X-A: b"},
		{[]string{"edit", path, "--id", "1", "--ignore", "sid"}, exitUsage, "with --url alone"},
		{[]string{"edit", path, "--url", "shop.example", "--ignore", "sid"}, exitGood, "1 matching rules"},
		{[]string{"edit", path, "--id", "0", "--status", "500"}, exitGood, "edited"},
		{[]string{"trim", path}, exitUsage, "say what to keep"},
		{[]string{"trim", path, "--page", "https://none.example/"}, exitUsage, "has no page https://none.example/"},
		{[]string{"trim", path, "--until", "500ms"}, exitGood, "1 of 2 exchanges dropped"},
		{[]string{"ls", path}, exitGood, "1 of 1 exchanges"},
	}
	for _, s := range steps {
		status, out, errs := archiveCommand(s.args...)
		if status != s.status || !strings.Contains(out+errs, s.says) {
			t.Fatalf("archive %s: status %d, printed %q %q; want %d and %q", strings.Join(s.args, " "), status, out, errs, s.status, s.says)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".edit") || strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestArchiveListJSON(t *testing.T) {
	_, out, _ := archiveCommand("ls", "--json", shopArchive(t))
	var list []archive.Entry
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 3 || list[2].Start != 2000 || list[0].End != 7 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestArchiveTrimUsed(t *testing.T) {
	path := shopArchive(t)
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(lab.Served{Exchange: a.Exchanges()[1].ID})
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(path), "replay.jsonl")
	if err := os.WriteFile(log, append(line, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := archiveCommand("trim", path, "--used", log); status != exitGood || !strings.Contains(out, "2 of 3") {
		t.Errorf("%d %s %s", status, out, errs)
	}
}
