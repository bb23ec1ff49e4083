package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// reference is the image's name where it is loaded.
const reference = "eidetic:latest"

// save writes the image as an archive for all engines.
func save(image v1.Image, file string, epoch int64, say func(string, ...any)) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), "layout-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	annotations := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": reference})
	if err := path.AppendImage(image, annotations); err != nil {
		return err
	}
	manifest, err := dockerManifest(image)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o644); err != nil {
		return err
	}
	if err := writeArchive(file+".part", os.DirFS(dir), epoch); err != nil {
		return err
	}
	if err := os.Rename(file+".part", file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	say("%s: %.0f MB, %s", file, float64(info.Size())/1e6, digest)
	return nil
}

// dockerManifest is the manifest.json by which "docker load" finds the parts.
func dockerManifest(image v1.Image) ([]byte, error) {
	name, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	one := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{blob(name), []string{reference}, nil}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return nil, err
		}
		one.Layers = append(one.Layers, blob(digest))
	}
	return json.Marshal([]any{one})
}

// blob is the path of a part in the archive.
func blob(h v1.Hash) string { return fmt.Sprintf("blobs/%s/%s", h.Algorithm, h.Hex) }

// writeArchive writes a folder as a tar archive, sorted and with the same time for every file.
func writeArchive(file string, from fs.FS, epoch int64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		h := &tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg, ModTime: time.Unix(epoch, 0)}
		if d.IsDir() {
			h.Name, h.Mode, h.Typeflag = name+"/", 0o755, tar.TypeDir
			return w.WriteHeader(h)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h.Size = info.Size()
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		part, err := from.Open(name)
		if err != nil {
			return err
		}
		defer part.Close()
		_, err = io.Copy(w, part)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}
