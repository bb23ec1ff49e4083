package suite

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// release is a tar archive with one program.
func release(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive cannot be written")
	}
	return b.Bytes()
}

// TestNewest: the release with the highest version is fetched once, and no file whose checksum is another.
func TestNewest(t *testing.T) {
	files := map[string][]byte{
		"/all/linux/fox-9.0.tar.gz": release(t, "fox/fox", "nine"), "/all/linux/fox-150.0.2.tar.gz": release(t, "fox/fox", "new"),
		"/all/linux/fox-150.0.tar.gz": release(t, "fox/fox", "old"), "/all/linux/bad-1.tar.gz": release(t, "fox/fox", "bad"),
	}
	var sums strings.Builder
	for name, body := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(body), strings.TrimPrefix(name, "/all/"))
	}
	files["/all/linux/bad-1.tar.gz"] = release(t, "fox/fox", "another")
	files["/all/SHA256SUMS"] = []byte(sums.String())
	asked := map[string]int{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if r.URL.Path == "/plain" {
			http.Redirect(w, r, "http://"+r.Host+"/all/SHA256SUMS", http.StatusFound)
			return
		}
		if body, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(body) // an error means that the client has disconnected
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	s := Source{Name: "fox", Sums: server.URL + "/all/SHA256SUMS", File: "linux/fox-*.tar.gz", Program: "fox/fox"}
	for range 2 {
		program, err := s.Newest(t.Context(), server.Client(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(program); err != nil || string(text) != "new" {
			t.Errorf("%s has %q, %v; want that of 150.0.2", program, text, err)
		}
	}
	if n := asked["/all/linux/fox-150.0.2.tar.gz"]; n != 1 {
		t.Errorf("the release was fetched %d times; want once", n)
	}
	for want, s := range map[string]Source{
		"the list says":  {Name: "bad", Sums: s.Sums, File: "linux/bad-*.tar.gz", Program: "fox/fox"},
		"not by https":   {Name: "plain", Sums: server.URL + "/plain", File: "linux/fox-*.tar.gz", Program: "fox/fox"},
		"lists no":       {Name: "none", Sums: s.Sums, File: "linux/none-*.tar.gz", Program: "fox/fox"},
		"is no program":  {Name: "fox", Sums: s.Sums, File: "linux/fox-*.tar.gz", Program: "fox/other"},
		"no such folder": {Name: "folder", Folder: filepath.Join(dir, "none-*"), Program: "fox"},
	} {
		if _, err := s.Newest(t.Context(), server.Client(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error with %q", s.Name, err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", ".fetching-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v; want nothing", left, err)
	}
	folders := Source{Name: "fox", Folder: filepath.Join(dir, "fox", "fox-*"), Program: "fox/fox"}
	if program, err := folders.Newest(t.Context(), nil, dir); err != nil || !strings.Contains(program, "fox-150.0.2-") {
		t.Errorf("newest of the folders: %s, %v; want 150.0.2", program, err)
	}
}

// TestNewestPackage: of two versions in a source of apt the newer is unpacked, and nothing is installed.
func TestNewestPackage(t *testing.T) {
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		testlab.NeedProgram(t, name)
	}
	dir := testlab.TempDir(t)
	var list strings.Builder
	for _, version := range []string{"9.0-1", "150.0.2-1", "150.0-1"} {
		tree, name := filepath.Join(dir, "tree-"+version), "eidetic-fox_"+version+"_all.deb"
		control := "Package: eidetic-fox\nVersion: " + version + "\nArchitecture: all\n" +
			"Maintainer: nobody <nobody@example.org>\nDescription: a test\n"
		for path, text := range map[string]string{"DEBIAN/control": control, "usr/lib/fox/fox": version} {
			path = filepath.Join(tree, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(dir, "repo", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := output(t.Context(), dir, "dpkg-deb", "--root-owner-group", "-b", tree, file); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&list, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", control, name, len(body), sha256.Sum256(body))
	}
	config := fmt.Sprintf("Dir::Etc::sourcelist \"%[1]s/list\"; Dir::Etc::sourceparts \"%[1]s/none\"; Dir::State \"%[1]s/state\";\n"+
		"Dir::State::status \"%[1]s/status\"; Dir::Cache \"%[1]s/cache\"; APT::Sandbox::User \"root\";\n", dir)
	for path, text := range map[string]string{"repo/Packages": list.String(), "status": "", "apt.conf": config,
		"list": "deb [trusted=yes] file:" + dir + "/repo ./\n"} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("APT_CONFIG", filepath.Join(dir, "apt.conf"))
	if _, err := output(t.Context(), dir, "apt-get", "update"); err != nil {
		t.Fatal(err)
	}
	s := Source{Name: "fox", Apt: []string{"eidetic-fox"}, Program: "usr/lib/fox/fox"}
	for range 2 {
		program, err := s.Newest(t.Context(), nil, filepath.Join(dir, "browsers"))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(program); err != nil || string(text) != "150.0.2-1" {
			t.Errorf("%s has %q, %v; want 150.0.2-1", program, text, err)
		}
	}
	s.Apt = []string{"eidetic-none"}
	if _, err := s.Newest(t.Context(), nil, dir); err == nil || !strings.Contains(err.Error(), "eidetic-none") {
		t.Errorf("a package that no source has: %v; want an error with its name", err)
	}
}

// TestSourcesAreChecked: what is wrong with a list of sources is told by its place.
func TestSourcesAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sources.yaml")
	for text, want := range map[string]string{
		"[]": "0 sources",
		"- {name: fox, folder: /srv/fox-*, program: ../sh}":                                  "[0].program",
		"- {name: fox, folder: fox-*, program: fox}":                                         "[0].folder",
		"- {name: fox, apt: [-o], program: fox}":                                             "[0].apt",
		"- {name: fox, program: fox}":                                                        "[0]: name a folder",
		"- {name: fox, sums: 'http://a.example/S', file: f-*.tar.gz, program: fox}":          "[0].sums",
		"- {name: fox, sums: 'https://a.example/S', file: fox.exe, program: fox}":            "[0].file",
		"- {name: fox, folder: /srv/*, program: fox}\n- {name: fox, folder: /a, program: b}": "[1].name",
		"- {name: fox, foldr: /srv/*, program: fox}":                                         "foldr",
		"- {name: fox, folder: /srv/*, program: fox}":                                        "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSources(file); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want an error with %q", text, err, want)
		}
	}
}
