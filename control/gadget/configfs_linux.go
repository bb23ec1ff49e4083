package gadget

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"eidetic/control/hid"
)

// function is an input device of the gadget.
type function struct {
	name       string
	descriptor []byte
	bytes      int  // of a report
	boot       bool // firmware menus understand it
}

// functions are what the options ask for. The kernel allows four.
func (o Options) functions() []function {
	list := []function{{"keyboard", hid.KeyboardDescriptor(), hid.KeyboardBytes, true}}
	if o.Relative {
		list = append(list, function{"motion", hid.MotionDescriptor(), hid.MotionBytes, false})
	} else {
		list = append(list, function{"pointer", hid.PointerDescriptor(), hid.PointerBytes, false})
	}
	if o.Touch {
		list = append(list, function{"touch", hid.TouchDescriptor(), hid.TouchBytes, false})
	}
	return list
}

const (
	configfs = "/sys/kernel/config/usb_gadget"
	config   = "configs/c.1"
	english  = "strings/0x409"
)

var errNoConfigfs = errors.New("the kernel's USB gadget support is not loaded: as root, run modprobe libcomposite") // constant

// build makes the gadget in configfs, without plugging it in.
func (g *Gadget) build(functions []function) error {
	if _, err := os.Stat(configfs); err != nil {
		return errNoConfigfs
	}
	if _, err := os.Stat(g.dir); err == nil { // what a program left that was killed
		if err := g.remove(); err != nil {
			return err
		}
	}
	b := builder{dir: g.dir}
	b.mkdir("")
	// The Linux Foundation's numbers for a composite gadget: no driver is looked for by them.
	b.put("idVendor", "0x1d6b")
	b.put("idProduct", "0x0104")
	b.put("bcdDevice", "0x0100")
	b.put("bcdUSB", "0x0200")
	b.mkdir(english)
	b.put(english+"/manufacturer", "Eidetic")
	b.put(english+"/product", "Eidetic input")
	b.put(english+"/serialnumber", "1")
	b.mkdir(config)
	b.mkdir(config + "/" + english)
	b.put(config+"/"+english+"/configuration", "keyboard, mouse, touch")
	b.put(config+"/MaxPower", "100")
	b.put(config+"/bmAttributes", "0x80")
	for _, f := range functions {
		at := "functions/hid." + f.name
		b.mkdir(at)
		if f.boot {
			b.put(at+"/protocol", "1")
			b.put(at+"/subclass", "1")
		}
		b.put(at+"/report_length", strconv.Itoa(f.bytes))
		b.put(at+"/report_desc", string(f.descriptor))
		if _, err := os.Stat(filepath.Join(g.dir, at, "no_out_endpoint")); err == nil { // from Linux 5.16 on; firmware menus need it
			b.put(at+"/no_out_endpoint", "1")
		}
		b.link(at, config+"/hid."+f.name)
	}
	if b.err != nil {
		return fmt.Errorf("making the USB devices: %w", b.err)
	}
	return nil
}

// builder makes files of configfs until one fails.
type builder struct {
	dir string
	err error
}

func (b *builder) mkdir(name string) {
	if b.err == nil {
		if err := os.Mkdir(filepath.Join(b.dir, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			b.err = err
		}
	}
}

func (b *builder) put(name, value string) {
	if b.err == nil {
		b.err = os.WriteFile(filepath.Join(b.dir, name), []byte(value), 0o644)
	}
}

func (b *builder) link(from, to string) {
	if b.err == nil {
		b.err = os.Symlink(filepath.Join(b.dir, from), filepath.Join(b.dir, to))
	}
}

// remove takes the gadget away, in the order that the kernel asks for.
func (g *Gadget) remove() error {
	_ = g.Unplug() // it may not be plugged in
	links, err := filepath.Glob(filepath.Join(g.dir, config, "hid.*"))
	if err != nil {
		return err
	}
	functions, err := filepath.Glob(filepath.Join(g.dir, "functions", "*"))
	if err != nil {
		return err
	}
	list := append(links, filepath.Join(g.dir, config, english), filepath.Join(g.dir, config))
	list = append(append(list, functions...), filepath.Join(g.dir, english), g.dir)
	for _, path := range list {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the USB devices: %w", err)
		}
	}
	return nil
}

// Plug plugs the gadget into its port, as if its cable were plugged in now.
func (g *Gadget) Plug() error {
	if err := os.WriteFile(filepath.Join(g.dir, "UDC"), []byte(g.port), 0o644); err != nil {
		return fmt.Errorf("gadget: plugging in at %s: %w (does another program use the port?)", g.port, err)
	}
	return nil
}

// Unplug unplugs it: the device forgets the input devices, and releases what they held.
func (g *Gadget) Unplug() error {
	if err := os.WriteFile(filepath.Join(g.dir, "UDC"), []byte("\n"), 0o644); err != nil {
		return fmt.Errorf("gadget: unplugging from %s: %w", g.port, err)
	}
	return nil
}

// node returns the device file of a function.
func (g *Gadget) node(name string) (string, error) {
	number, err := os.ReadFile(filepath.Join(g.dir, "functions", "hid."+name, "dev"))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile("/sys/dev/char/" + string(bytes.TrimSpace(number)) + "/uevent")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok {
			return "/dev/" + filepath.Base(file), nil
		}
	}
	return "", fmt.Errorf("the kernel does not name the device file of the %s", name)
}
