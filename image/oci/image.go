package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/image/debian"
	"eidetic/image/pack"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

const (
	// user is who the container's processes are: no root, so that they need no capability, and
	// make namespaces in a user namespace of their own.
	user = 1000
	// data is the folder that is to outlive a container.
	data = "var/lib/appliance"
)

// assemble makes the image of two layers: Debian's files, which rarely change, and ours.
func assemble(o options, archive string, say func(string, ...any)) (v1.Image, error) {
	file, err := debianLayer(o, archive, say)
	if err != nil {
		return nil, err
	}
	base, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	binary, err := os.ReadFile(o.binary)
	if err != nil {
		return nil, fmt.Errorf("%w; make build makes it", err)
	}
	var ours bytes.Buffer
	if err := compress(&ours, ourFiles(binary), o.epoch); err != nil {
		return nil, err
	}
	top, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(ours.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	made := v1.Time{Time: time.Unix(o.epoch, 0).UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{Created: made, CreatedBy: "mmdebstrap bookworm"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: made, CreatedBy: "make oci"}})
	if err != nil {
		return nil, err
	}
	description, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	description = description.DeepCopy()
	description.Created, description.Architecture, description.OS = made, "amd64", "linux"
	description.Config = config(o)
	return mutate.ConfigFile(image, description)
}

// config is what a container does unless it is told otherwise.
func config(o options) v1.Config {
	labels := map[string]string{
		"org.opencontainers.image.title":       "Eidetic",
		"org.opencontainers.image.description": "Measures how fast a page felt: records and replays it, films it at 60 Hz, and shows the evidence",
		"org.opencontainers.image.version":     o.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	if o.revision != "" {
		labels["org.opencontainers.image.revision"] = o.revision
	}
	return v1.Config{
		User:       fmt.Sprintf("%[1]d:%[1]d", user),
		Entrypoint: []string{"/usr/bin/appliance"},
		// A container's port is reached from outside it, so the panel speaks TLS and asks for its token.
		Cmd:          []string{"serve", "--listen", "0.0.0.0:8080", "--data", "/" + data},
		Env:          []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/" + data, "LANG=C.UTF-8"},
		WorkingDir:   "/" + data,
		Volumes:      map[string]struct{}{"/" + data: {}},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels:       labels,
	}
}

// ourFiles are the files of the second layer.
func ourFiles(binary []byte) pack.Tree {
	tree := make(pack.Tree)
	tree.Add("usr/bin/appliance", 0o755, binary)
	tree.Folder(data, 0o700) // the token is in it
	tree[data].UID, tree[data].GID = user, user
	return tree
}

// debianLayer compresses the files that Debian has, unless that was done before, and returns
// the layer's file.
func debianLayer(o options, archive string, say func(string, ...any)) (string, error) {
	prune := filepath.Join(o.source, "prune.txt")
	sum := sha256.New()
	info, err := os.Stat(archive)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(sum, filepath.Base(archive), info.Size(), info.ModTime().UnixNano(), o.epoch)
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, name := range []string{prune, self} {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	layer := filepath.Join(o.out, fmt.Sprintf("layer-%x.tar.gz", sum.Sum(nil)[:8]))
	if _, err := os.Stat(layer); err == nil {
		say("layer: as compressed before (%s)", layer)
		return layer, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := forget(o.out); err != nil {
		return "", err
	}
	tree, err := debian.Load(archive, prune)
	if err != nil {
		return "", err
	}
	if err := furnish(tree); err != nil {
		return "", err
	}
	say("layer: %d files, %.0f MB", len(tree), float64(tree.Size())/1e6)
	f, err := os.Create(layer + ".part")
	if err != nil {
		return "", err
	}
	err = errors.Join(compress(f, tree, o.epoch), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return layer, os.Rename(f.Name(), layer)
}

// forget removes the layers of earlier builds.
func forget(out string) error {
	old, err := filepath.Glob(filepath.Join(out, "layer-*"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// furnish adds what Debian's files lack without a service manager.
func furnish(tree pack.Tree) error {
	for file, line := range map[string]string{
		"etc/passwd": fmt.Sprintf("appliance:x:%[1]d:%[1]d:Eidetic:/%[2]s:/usr/sbin/nologin\n", user, data),
		"etc/group":  fmt.Sprintf("appliance:x:%d:\n", user),
	} {
		if tree[file] == nil {
			return fmt.Errorf("no %s among the packages' files", file)
		}
		tree[file].Data = append(tree[file].Data, line...)
	}
	for name, mode := range map[string]uint32{
		"dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "var/log": 0o755, "var/cache": 0o755,
	} {
		tree.Folder(name, mode)
	}
	// The container engine fills these; the lab covers them, and so they must be there.
	tree.Add("etc/resolv.conf", 0o644, nil)
	tree.Add("etc/hosts", 0o644, []byte("127.0.0.1 localhost\n::1 localhost\n"))
	return nil
}

// compress writes a tree as a layer: gzip, which every engine reads.
func compress(w io.Writer, tree pack.Tree, epoch int64) error {
	// A library pinned in go.sum gives the same bytes on every machine.
	z, err := gzip.NewWriterLevel(w, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	return errors.Join(tree.WriteTar(z, epoch), z.Close())
}
