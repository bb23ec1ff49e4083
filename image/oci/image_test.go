package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"eidetic/image/pack"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// debianTar is a small file system, as mmdebstrap would write it.
func debianTar(t *testing.T, file string) {
	t.Helper()
	tree := make(pack.Tree)
	tree.Add("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/bin/sh\n"))
	tree.Add("etc/group", 0o644, []byte("root:x:0:\n"))
	tree.Add("usr/bin/tool", 0o755, []byte("#!/bin/sh\n"))
	tree.Add("usr/share/doc/tool/README", 0o644, []byte("pruned"))
	tree["usr/bin/same"] = tree["usr/bin/tool"]
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := tree.WriteTar(f, 1); err != nil {
		t.Fatal(err)
	}
}

// TestImage: the archive is read by another reader, has the configuration and the files, and
// is the same when it is made again from the start.
func TestImage(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "root.tar")
	debianTar(t, archive)
	binary := filepath.Join(t.TempDir(), "appliance")
	if err := os.WriteFile(binary, []byte("the binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	make := func() (file string) {
		t.Helper()
		o := options{source: ".", out: t.TempDir(), binary: binary, version: "0.1.2", revision: "c0ffee", epoch: 1_767_225_600}
		image, err := assemble(o, archive, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		file = filepath.Join(o.out, "eidetic.tar")
		if err := save(image, file, o.epoch, t.Logf); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := make()
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(make())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("made a second time, the image has other bytes")
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	description, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := description.Config
	if d := cmp.Diff([]string{"/usr/bin/appliance"}, c.Entrypoint); d != "" || c.User != "1000:1000" ||
		c.Labels["org.opencontainers.image.version"] != "0.1.2" || c.Labels["org.opencontainers.image.revision"] != "c0ffee" {
		t.Errorf("configuration %+v (entrypoint -want +got: %s)", c, d)
	}
	want := map[string]string{
		"usr/bin/tool": "→ usr/bin/same", "usr/bin/same": "#!/bin/sh\n", "usr/bin/appliance": "the binary",
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nappliance:x:1000:1000:Eidetic:/var/lib/appliance:/usr/sbin/nologin\n",
		"etc/group":  "root:x:0:\nappliance:x:1000:\n", "etc/resolv.conf": "", "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
	}
	if d := cmp.Diff(want, filesOf(t, image)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

// filesOf reads the files of an image, with "→ NAME" for a hard link.
func filesOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	files := map[string]string{}
	for tr := tar.NewReader(content); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			files[h.Name] = string(text)
		case tar.TypeLink:
			files[h.Name] = "→ " + h.Linkname
		}
	}
}
