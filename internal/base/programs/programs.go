// Package programs is the one table of the programs that the appliance starts:
// the file names that each may have, the Debian package that it comes in, and
// what needs it. "appliance doctor", the check before a run and the virtual
// device search here, so that none of them misses a program that another finds.
package programs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is a program that the appliance starts.
type Program struct {
	Name    string   // the check's name in appliance doctor
	Files   []string // the file names that it may have, the preferred one first
	Package string   // the Debian package
	For     string   // what needs it
}

// Chromium is the browser of a virtual device.
func Chromium() Program {
	return Program{"chromium", []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}, "chromium",
		"virtual devices: their browser"}
}

// Firefox is another browser of a virtual device, where a plan asks for it.
func Firefox() Program {
	return Program{"firefox", []string{"firefox", "firefox-esr"}, "firefox-esr", "virtual devices: Firefox, where a plan asks for it"}
}

// Certutil puts the box's certificate authority into the browser's store.
func Certutil() Program {
	return Program{"certutil", []string{"certutil"}, "libnss3-tools", "virtual devices: their browser trusts the box"}
}

// Xvfb is the screen of a virtual device.
func Xvfb() Program {
	return Program{"xvfb", []string{"Xvfb"}, "xvfb", "virtual devices: their screen"}
}

// Xorg is the screen of a virtual device that is touched.
func Xorg() Program {
	return Program{"xorg", []string{"Xorg"}, "xserver-xorg-core", "virtual devices: a touch screen, for gestures of several fingers"}
}

// Dummy is the driver by which Xorg has a screen without a graphics card.
func Dummy() Program {
	return Program{"dummy", []string{"/usr/lib/xorg/modules/drivers/dummy_drv.so"}, "xserver-xorg-video-dummy",
		"virtual devices: a touch screen, for gestures of several fingers"}
}

// Uim is the module by which programs of GTK 3 have the input methods of uim.
func Uim() Program {
	return Program{"uim", []string{"/usr/lib/*/gtk-3.0/3.0.0/immodules/im-uim.so"}, "uim-gtk3-immodule",
		"virtual devices: input methods, where a plan asks for one"}
}

// Anthy is the one of them for Japanese, with its dictionary.
func Anthy() Program {
	return Program{"anthy", []string{"/usr/lib/*/uim/plugin/libuim-anthy-utf8.so"}, "uim-anthy", "virtual devices: Japanese by an input method"}
}

// Vpxenc encodes the evidence videos.
func Vpxenc() Program {
	return Program{"vpxenc", []string{"vpxenc"}, "vpx-tools", "evidence videos"}
}

// FFmpeg decodes videos.
func FFmpeg() Program {
	return Program{"ffmpeg", []string{"ffmpeg"}, "ffmpeg", "phones filmed by scrcpy; videos of other tools"}
}

// Hostapd makes a radio an access point.
func Hostapd() Program {
	return Program{"hostapd", []string{"hostapd"}, "hostapd", "devices by Wi-Fi"}
}

// All returns every program of the table.
func All() []Program {
	return append(VirtualDevice(), Xorg(), Dummy(), Uim(), Anthy(), FFmpeg(), Hostapd())
}

// VirtualDevice returns the programs without which no run on a virtual device can begin.
func VirtualDevice() []Program {
	return []Program{Chromium(), Certutil(), Xvfb(), Vpxenc()}
}

// Find returns the path of the first of the program's files that is installed.
// A file with a path is where it says, and need not be a program; it may be a pattern. Others are searched on the PATH, and where Debian
// keeps root's programs, which the PATH of an ordinary user lacks. The error names the package to install.
func (p Program) Find() (path string, err error) {
	for _, file := range p.Files {
		if filepath.IsAbs(file) {
			if found, err := filepath.Glob(file); err == nil && len(found) > 0 {
				return found[0], nil
			}
			continue
		}
		for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
			if path, err = exec.LookPath(dir + file); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed (%s): apt-get install %s: %w", strings.Join(p.Files, " or "), p.For, p.Package,
		exec.ErrNotFound)
}

// Missing returns one error that names all the listed programs that are not
// installed and the command that installs them, or nil.
func Missing(list []Program) error {
	var missing, packages []string
	for _, p := range list {
		if _, err := p.Find(); err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", p.Files[0], p.For))
			packages = append(packages, p.Package)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this machine lacks %s; install with: apt-get install %s", strings.Join(missing, ", "), strings.Join(packages, " "))
}
