package suite

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"

	"eidetic/internal/lab"
)

// bounds are those of what a release unpacks to.
type bounds struct {
	bytes   int64
	members int
}

// releaseBounds are ten times what browsers have: Chromium unpacks to 700 MB in 500 files.
var releaseBounds = bounds{bytes: 6 << 30, members: 50_000} // never written

// errMuch says that a release unpacks to more than one has.
var errMuch = errors.New("no release of a browser has so much") // never written

// unpack has tar unpack an archive, which may be compressed, into a folder. tar itself takes no member outside that. What
// it writes is counted as it comes: a few kB unpack to as many GB as somebody likes.
func unpack(ctx context.Context, in io.Reader, dir string, most bounds, flags ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plain, err := decompressed(ctx, in)
	if err != nil {
		return err
	}
	defer plain.Close()
	cmd := exec.CommandContext(ctx, "tar", append([]string{"-x", "--no-same-owner", "-f", "-", "-C", dir}, flags...)...)
	var words bytes.Buffer
	cmd.Stderr = &words
	to, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	wrong := most.check(io.TeeReader(plain, to))
	if errors.Is(wrong, errMuch) {
		cancel()
	}
	_ = to.Close() // tar says what is missing
	err = cmd.Wait()
	if wrong != nil && !errors.Is(wrong, syscall.EPIPE) { // else tar has ended before
		return fmt.Errorf("unpack: %w", wrong)
	}
	if err != nil {
		return fmt.Errorf("tar: %w: %s", err, lab.Clip(strings.TrimSpace(words.String()), 300))
	}
	return nil
}

// check reads a tar archive to its end.
func (b bounds) check(r io.Reader) error {
	limited := &io.LimitedReader{R: r, N: b.bytes + 1}
	archive := tar.NewReader(limited)
	for n := 0; ; n++ {
		_, err := archive.Next()
		switch {
		case limited.N <= 0:
			return fmt.Errorf("more than %d MiB: %w", b.bytes>>20, errMuch)
		case errors.Is(err, io.EOF):
			_, err := io.Copy(io.Discard, limited) // what stands behind the archive's end
			if limited.N <= 0 {
				return fmt.Errorf("more than %d MiB: %w", b.bytes>>20, errMuch)
			}
			return err
		case err != nil:
			return err
		case n == b.members:
			return fmt.Errorf("more than %d files: %w", b.members, errMuch)
		}
	}
}

// decompressed is what a reader has, without the compression that its first bytes tell.
func decompressed(ctx context.Context, in io.Reader) (io.ReadCloser, error) {
	packed := bufio.NewReaderSize(in, 64<<10)
	head, _ := packed.Peek(6) // there may be less
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("\x1f\x8b"):
		return gzip.NewReader(packed)
	case starts("BZh"):
		return io.NopCloser(bzip2.NewReader(packed)), nil
	case starts("\x28\xb5\x2f\xfd"):
		z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case starts("\xfd7zXZ\x00"):
		return written(ctx, packed, "xz", "-dc", "--memlimit-decompress=1GiB"), nil
	}
	return io.NopCloser(packed), nil
}

// written is what a program writes of its input. Its error is that of the reading.
func written(ctx context.Context, in io.Reader, name string, args ...string) io.ReadCloser {
	r, w := io.Pipe()
	cmd := exec.CommandContext(ctx, name, args...)
	var words bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, w, &words
	go func() {
		err := cmd.Run()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", name, err, lab.Clip(strings.TrimSpace(words.String()), 300))
		}
		w.CloseWithError(err)
	}()
	return r
}

// unpackFile unpacks a file of a tar archive.
func unpackFile(ctx context.Context, file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return unpack(ctx, f, dir, releaseBounds)
}

// unpackPackage unpacks a package of Debian, with the modes that its files have.
func unpackPackage(ctx context.Context, file, dir string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files := written(ctx, nil, "dpkg-deb", "--fsys-tarfile", file)
	defer files.Close()
	return unpack(ctx, files, dir, releaseBounds, "-p")
}
