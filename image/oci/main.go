// Command oci makes a container image of the appliance with its browsers: out/oci/eidetic.tar,
// which podman load, docker load and skopeo accept. No daemon and no root's daemon is needed.
//
// In flow the lists beside this program, Debian's packages through mmdebstrap, and the static
// binary; out flow the image, packages.txt (the packages inside) and drift.txt (their
// differences from packages.lock). The same packages and binary give the same bytes.
//
// The file is an image layout of the Open Container Initiative (image-spec v1.1) in a tar
// archive, with the manifest.json that "docker save" writes beside it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"eidetic/image/debian"
)

// options are the command line.
type options struct {
	source, out, binary, version, revision, mirror string
	accept, refresh                                bool
	epoch                                          int64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("oci", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", "image/oci", "folder with the lists")
	flags.StringVar(&o.out, "out", "out/oci", "folder for what is made")
	flags.StringVar(&o.binary, "binary", "bin/appliance", "the static binary")
	flags.StringVar(&o.version, "version", "0.0.0", "version of the image, one of its labels")
	flags.StringVar(&o.revision, "revision", "", "commit that the binary was made from, one of its labels")
	flags.StringVar(&o.mirror, "mirror", debian.Mirror, "Debian mirror")
	flags.BoolVar(&o.accept, "accept", false, "take the packages' present versions as the locked ones")
	flags.BoolVar(&o.refresh, "refresh", false, "fetch the packages again even if their list did not change")
	// 1 January 2026: the image does not depend on the time of the build.
	flags.Int64Var(&o.epoch, "epoch", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), "time of every file, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	started := time.Now()
	return build(ctx, o, func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%5.1f s  %s\n", time.Since(started).Seconds(), fmt.Sprintf(format, args...))
	})
}

// build makes the image.
func build(ctx context.Context, o options, say func(string, ...any)) error {
	list, err := debian.ReadList(filepath.Join(o.source, "packages.txt"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	root := debian.Root{
		Packages: list, Components: "main", Mirror: o.mirror, Out: o.out, Epoch: o.epoch, Refresh: o.refresh,
	}
	archive, err := root.Fetch(ctx, say)
	if err != nil {
		return err
	}
	lock := debian.Lock{File: filepath.Join(o.source, "packages.lock"), Out: o.out, Accept: o.accept, Target: "oci-accept"}
	if err := lock.Check(archive, say); err != nil {
		return err
	}
	image, err := assemble(o, archive, say)
	if err != nil {
		return err
	}
	return save(image, filepath.Join(o.out, "eidetic.tar"), o.epoch, say)
}
