// Command build makes the box's image: out/image/appliance.efi, the whole
// system as one EFI program, and out/image/appliance.img, a raw disk that
// boots it. With --test it makes appliance-test.efi and appliance-test.img
// beside them: the same plus a root shell on the second serial port and drivers
// that imitate hardware. It also makes three updates of the test build: one that
// works (next), one whose service never starts (bad), and an older one (old).
//
// In flow the lists and files of the folder image/, Debian's packages through
// mmdebstrap, and the binary; out flow the images, packages.txt (the packages
// inside), drift.txt (their differences from packages.lock) and, where the key can be used,
// appliance.update (the EFI program, signed for boxes that trust that key).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"eidetic/image/debian"
)

// options are the command line.
type options struct {
	source, out, binary, version, mirror, key, passphrase, minimum, sign string
	trust                                                                []string // files
	browsers                                                             []string
	test, wifi, accept, refresh                                          bool
	epoch                                                                int64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", "image", "folder with the lists and the files of the image")
	flags.StringVar(&o.out, "out", "out/image", "folder for what is made")
	flags.StringVar(&o.binary, "binary", "bin/appliance", "the static binary")
	flags.StringVar(&o.version, "version", "0.0.0", "version of the image, numbers and dots: the boot loader sorts by it")
	flags.StringVar(&o.mirror, "mirror", debian.Mirror, "Debian mirror")
	flags.StringVar(
		&o.key,
		"key",
		"",
		"Ed25519 private key (of ssh-keygen, or PKCS #8) that signs the update, or none; OUT/update.key, made with a passphrase when missing, without the flag",
	)
	flags.StringVar(&o.passphrase, "passphrase-file", "", "file whose first line is the key's passphrase; without it, the terminal is asked")
	flags.Func("trust", "file of public keys (PEM) whose updates the image takes too; may be repeated", func(file string) error {
		o.trust = append(o.trust, file)
		return nil
	})
	flags.StringVar(&o.sign, "sign", "", "make no image, and sign this EFI program of --version, which gives an update: FILE.efi becomes FILE.update")
	flags.StringVar(&o.minimum, "minimum", "0", "oldest version that may install the update: the one whose data and keys it still understands")
	flags.BoolVar(&o.test, "test", false, "make the test build too")
	flags.BoolVar(&o.wifi, "wifi", false, "with Wi-Fi drivers that need firmware, and Debian's non-free firmware")
	flags.Func("browsers", "with a virtual device and these browsers, for example 'chromium firefox-esr'", func(text string) error {
		o.browsers = browsersOf(text)
		return nil
	})
	flags.BoolVar(&o.accept, "accept", false, "take the packages' present versions as the locked ones")
	flags.BoolVar(&o.refresh, "refresh", false, "fetch the packages again even if none of the lists changed")
	// 1 January 2026: the image does not depend on the time of the build.
	flags.Int64Var(&o.epoch, "epoch", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), "time of every file, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return build(ctx, o, os.Stderr)
}
