// Command deb makes a Debian package of the service, for users who want it on
// their own machine instead of on a box: out/appliance_VERSION_amd64.deb.
//
// In flow the static binary, the service's units, LICENSE and the box's
// documentation; out flows a binary package (deb-control(5)), the same bytes
// for the same input. The package leaves out the units that run a whole machine,
// and its panel listens only on the machine itself.
package main

import (
	"bytes"
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"eidetic/systemd/units"
)

// scripts are the package's control files; @VERSION@ and @SIZE@ are filled in.
//
//go:embed control
var scripts embed.FS

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "deb:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	binary, version, source, out string
}

func run(args []string) error {
	var o options
	flags := flag.NewFlagSet("deb", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", "bin/appliance", "the static binary")
	flags.StringVar(&o.version, "version", "0.0.0", "version of the package")
	flags.StringVar(&o.source, "source", ".", "the repository's root")
	flags.StringVar(&o.out, "out", "out", "folder for the package")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file, err := build(o)
	if err == nil {
		fmt.Println(file)
	}
	return err
}

// build makes the package and returns its file.
func build(o options) (string, error) {
	dir, err := os.MkdirTemp("", "deb-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	if err := stage(dir, o); err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return "", err
	}
	file := filepath.Join(o.out, "appliance_"+o.version+"_amd64.deb")
	cmd := exec.Command("dpkg-deb", "--root-owner-group", "--build", dir, file)
	// 1 January 2026, as in the image: the package does not depend on the time of the build.
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("dpkg-deb: %w: %s", err, bytes.TrimSpace(out))
	}
	return file, nil
}

// stage writes the package's files into dir.
func stage(dir string, o options) error {
	put := func(name string, mode fs.FileMode, data []byte, err error) error {
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, mode); err != nil {
			return err
		}
		return os.Chmod(file, mode) // whatever the umask is
	}
	binary, err := os.ReadFile(o.binary)
	if err != nil {
		return fmt.Errorf("%w; make build makes it", err)
	}
	if err := put("usr/bin/appliance", 0o755, binary, nil); err != nil {
		return err
	}
	const share = "usr/share/"
	for _, page := range []struct {
		to   string
		args []string
	}{
		{share + "bash-completion/completions/appliance", []string{"completion", "bash"}},
		{share + "fish/vendor_completions.d/appliance.fish", []string{"completion", "fish"}},
		{share + "man/man1/appliance.1", []string{"man"}},
	} {
		text, err := exec.Command(o.binary, page.args...).Output()
		if err != nil {
			err = fmt.Errorf("%s %v: %w", o.binary, page.args, err)
		}
		if err := put(page.to, 0o644, text, err); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{
		"LICENSE":     "usr/share/doc/appliance/copyright",
		"docs/box.md": "usr/share/doc/appliance/box.md",
		"image/root/etc/appliance/appliance.yaml": "etc/appliance/appliance.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(o.source, from))
		if err := put(to, 0o644, data, err); err != nil {
			return err
		}
	}
	const system = "usr/lib/systemd/system/"
	for from, to := range map[string]string{
		"appliance.service": system, "appliance.slice": system, "appliance-panel.socket": system, "run-appliance.mount": system,
		"appliance.sysusers": "usr/lib/sysusers.d/appliance.conf", "appliance.tmpfiles": "usr/lib/tmpfiles.d/appliance.conf",
	} {
		if strings.HasSuffix(to, "/") {
			to += from
		}
		data, err := fs.ReadFile(units.Files, from)
		if err := put(to, 0o644, data, err); err != nil {
			return err
		}
	}
	if err := put("usr/share/doc/appliance/virtual-device.conf", 0o644, units.VirtualDevice, nil); err != nil {
		return err
	}
	const local = "# On a machine of many uses the panel is for those at it.\n[Socket]\nListenStream=\nListenStream=127.0.0.1:8080\n"
	if err := put(system+"appliance-panel.socket.d/50-local.conf", 0o644, []byte(local), nil); err != nil {
		return err
	}
	return control(o, len(binary), put)
}

// control adds the package's own description and scripts.
func control(o options, size int, put func(name string, mode fs.FileMode, data []byte, err error) error) error {
	entries, err := scripts.ReadDir("control")
	if err != nil {
		return err
	}
	fill := strings.NewReplacer("@VERSION@", o.version, "@SIZE@", fmt.Sprint(size>>10))
	for _, e := range entries {
		text, err := scripts.ReadFile("control/" + e.Name())
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(text, []byte("#!")) {
			mode = 0o755
		}
		if err := put("DEBIAN/"+e.Name(), mode, []byte(fill.Replace(string(text))), err); err != nil {
			return err
		}
	}
	return nil
}
