package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Need is what a part asks of a box and one of its devices.
type Need struct {
	Boxes    []string `json:"boxes,omitempty"`    // names: any of these
	Devices  []string `json:"devices,omitempty"`  // names of devices: any of these
	Labels   []string `json:"labels,omitempty"`   // KEY=PATTERN, all of these, of the device or else of the box
	Browsers []string `json:"browsers,omitempty"` // all of these
	Virtual  bool     `json:"virtual,omitempty"`  // what only a virtual device can do
	// Reference marks runs that measure the box: it gets them in maintenance as well.
	Reference bool `json:"reference,omitempty"`
}

// NeedOf is what a plan asks for.
func NeedOf(p lab.Plan) (Need, error) {
	var n Need
	if p.Device != "" {
		box, device, both := strings.Cut(p.Device, DeviceMark)
		if both {
			n.Boxes, n.Devices = []string{box}, []string{device}
		} else {
			n.Devices = []string{p.Device}
		}
	}
	if on := p.On; on != nil {
		if len(n.Boxes) > 0 && len(on.Boxes) > 0 && !slices.Contains(on.Boxes, n.Boxes[0]) {
			return n, fmt.Errorf("on.boxes: the device %s is of another box", p.Device)
		}
		if len(n.Boxes) == 0 {
			n.Boxes = slices.Clone(on.Boxes)
		}
		for i, text := range on.Labels {
			if err := checkLabelPattern(text); err != nil {
				return n, fmt.Errorf("on.labels[%d]: %w", i, err)
			}
		}
		n.Labels = slices.Clone(on.Labels)
	}
	for _, arm := range p.Every() {
		if arm.Browser == nil {
			continue
		}
		n.Virtual = true // a device at a port has its own
		// A command of its own is a program that nobody knows before the box starts it.
		if arm.Browser.Command == "" {
			n.Browsers = append(n.Browsers, programOf(arm.Browser.Name))
		}
	}
	for _, list := range []*[]string{&n.Boxes, &n.Devices, &n.Labels, &n.Browsers} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return n, nil
}

// DeviceMark stands between the names of a box and its device: lab-1/virtual.
const DeviceMark = "/"

// programOf is the program that a browser's name in a plan starts.
func programOf(name string) string { return cmp.Or(name, lab.Chromium) }

// Key names the class of all parts with the same need; it is the name of their queue.
func (n Need) Key() string {
	text, err := json.Marshal(n)
	if err != nil {
		panic("fleet: a need has only strings: " + err.Error())
	}
	digest := sha256.Sum256(text)
	return "need-" + hex.EncodeToString(digest[:10])
}

// Fits lists the devices of a box that can carry out a part with the need, by name.
func (n Need) Fits(box string, o Offer) (devices []string) { return n.devices(box, o, true) }

// Could lists the devices of a box that could carry out a part with the need if they were ready.
func (n Need) Could(box string, o Offer) []string { return n.devices(box, o, false) }

func (n Need) devices(box string, o Offer, ready bool) (names []string) {
	for _, d := range o.Devices {
		if (d.Ready || !ready) && n.FitsDevice(box, o, d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// FitsDevice says whether a device of a box lacks nothing of the need, whether it is ready or not.
func (n Need) FitsDevice(box string, o Offer, d OfferedDevice) bool {
	for range n.missing(box, o, d) {
		return false
	}
	return true
}

// Lacks lists what a device of a box lacks of the need, in words, such as "browser chromium".
func (n Need) Lacks(box string, o Offer, d OfferedDevice) (all []string) {
	for what, names := range n.missing(box, o, d) {
		all = append(all, what+" "+strings.Join(names, " or "))
	}
	return all
}

// missing goes through what a device lacks: the kind of thing, and the names of which one would do. Claims stop at the
// first, so no text is made before somebody reads it.
func (n Need) missing(box string, o Offer, d OfferedDevice) iter.Seq2[string, []string] {
	return func(yield func(what string, names []string) bool) {
		if len(n.Boxes) > 0 && !slices.Contains(n.Boxes, box) && !yield("box", n.Boxes) {
			return
		}
		if len(n.Devices) > 0 && !slices.Contains(n.Devices, d.Name) && !yield("device", n.Devices) {
			return
		}
		if n.Virtual && d.Kind != "virtual" && !yield("a device that is", []string{"virtual"}) {
			return
		}
		if d.Kind == "virtual" {
			for i, b := range n.Browsers {
				if !hasBrowser(d.Browsers, b) && !yield("browser", n.Browsers[i:i+1]) {
					return
				}
			}
		}
		for i, text := range n.Labels {
			key, pattern, _ := strings.Cut(text, "=")
			value, ok := d.Labels[key]
			if !ok {
				value, ok = o.Labels[key]
			}
			if (!ok || !matches(pattern, value)) && !yield("label", n.Labels[i:i+1]) {
				return
			}
		}
	}
}

// hasBrowser says whether a program is there; firefox is either of Debian's two.
func hasBrowser(all []string, name string) bool {
	debians := []string{lab.Firefox, lab.FirefoxESR}
	return slices.Contains(all, name) ||
		slices.Contains(debians, name) && slices.ContainsFunc(all, func(b string) bool { return slices.Contains(debians, b) })
}

// matches says whether a value is as a pattern says, in which * stands for any characters.
func matches(pattern, value string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	value = strings.ToLower(value)
	if len(parts) == 1 {
		return value == parts[0]
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(value, part)
		if i < 0 {
			return false
		}
		value = value[i+len(part):]
	}
	return true
}

var (
	labelKey = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,39}$`)             // constant
	boxName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // constant; a label of DNS
	digest   = regexp.MustCompile(`^[0-9a-f]{64}$`)                       // constant
)

// CheckBoxName returns an error for a name that no box may have.
func CheckBoxName(name string) error {
	if !boxName.MatchString(name) {
		return fmt.Errorf("%.70q is no name for a box: use a-z, 0-9 and dashes, at most %d of them", name, MaxNameBytes)
	}
	return nil
}

func checkLabelPattern(text string) error {
	key, pattern, ok := strings.Cut(text, "=")
	switch {
	case !ok || !labelKey.MatchString(key):
		return fmt.Errorf("%.60q: write KEY=PATTERN, such as model=Pixel*", text)
	case len(pattern) > MaxLabelBytes:
		return fmt.Errorf("%.60q…: the pattern has more than %d bytes", text, MaxLabelBytes)
	}
	return nil
}

// HasLabel says whether a pattern KEY=PATTERN, in which * stands for any characters, fits one of the labels.
func HasLabel(labels map[string]string, text string) (bool, error) {
	if err := checkLabelPattern(text); err != nil {
		return false, err
	}
	key, pattern, _ := strings.Cut(text, "=")
	value, ok := labels[key]
	return ok && matches(pattern, value), nil
}

// CheckLabels returns an error for labels that no box or device may have.
func CheckLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return fmt.Errorf("%d labels are more than %d", len(labels), MaxLabels)
	}
	for key, value := range labels {
		if !labelKey.MatchString(key) || len(value) > MaxLabelBytes {
			return fmt.Errorf("%.60q=%.60q: a label has a key of a-z, 0-9, _, . and -, and a value of at most %d bytes", key, value, MaxLabelBytes)
		}
	}
	return nil
}

// Check returns an error for an offer that no box of ours makes.
func (o Offer) Check() error {
	if len(o.Devices) > MaxDevices {
		return fmt.Errorf("%d devices are more than %d", len(o.Devices), MaxDevices)
	}
	if err := CheckLabels(o.Labels); err != nil {
		return err
	}
	if len(o.Software) > 200 || o.Cores < 0 || o.Memory < 0 {
		return errors.New("software, cores or memory_bytes is out of range")
	}
	if len(o.Image) > MaxImageBytes {
		return fmt.Errorf("image: more than %d bytes", MaxImageBytes)
	}
	if u := o.Update; u != nil && (len(u.ID) > MaxImageBytes || len(u.Error) > MaxErrorBytes) {
		return fmt.Errorf("update: its identifier has more than %d bytes, or its error more than %d", MaxImageBytes, MaxErrorBytes)
	}
	seen := map[string]bool{}
	for i, d := range o.Devices {
		if d.Name == "" || len(d.Name) > 100 || strings.Contains(d.Name, DeviceMark) || seen[d.Name] {
			return fmt.Errorf("devices[%d].name: %.60q is empty, too long, there twice, or has a slash", i, d.Name)
		}
		seen[d.Name] = true
		if len(d.Browsers) > MaxBrowsers || slices.ContainsFunc(d.Browsers, func(b string) bool { return len(b) > 100 }) ||
			len(d.Kind)+len(d.Problem)+len(d.Screen)+len(d.Controls) > 4096 {
			return fmt.Errorf("devices[%d]: its texts are too long", i)
		}
		if err := CheckLabels(d.Labels); err != nil {
			return fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	return nil
}

// CheckFiles returns an error for a list of files that no run folder has. A path that leads out of the folder, or to a
// hidden file, is refused.
func CheckFiles(files []File) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files are more than %d", len(files), MaxFiles)
	}
	seen := make(map[string]bool, len(files))
	for i, f := range files {
		switch {
		case f.Path == "" || len(f.Path) > 400 || path.Clean(f.Path) != f.Path || path.IsAbs(f.Path) || f.Path == ".." ||
			strings.HasPrefix(f.Path, "../") || strings.ContainsAny(f.Path, "\\\x00\n") || strings.HasPrefix(path.Base(f.Path), ".") ||
			strings.HasPrefix(f.Path, ".") || strings.Contains(f.Path, "/."):
			return fmt.Errorf("files[%d].path: %.100q is no path of a file below a run's folder", i, f.Path)
		case seen[f.Path]:
			return fmt.Errorf("files[%d].path: %.100q is there twice", i, f.Path)
		case !digest.MatchString(f.SHA256):
			return fmt.Errorf("files[%d].sha256: %.70q is no SHA-256 in hexadecimal", i, f.SHA256)
		case f.Bytes < 0:
			return fmt.Errorf("files[%d].bytes: %d", i, f.Bytes)
		}
		seen[f.Path] = true
	}
	for i, f := range files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if seen[dir] {
				return fmt.Errorf("files[%d].path: %.100q lies in %.100q, which is a file", i, f.Path, dir)
			}
		}
	}
	return nil
}
