package adbserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Address is where the adb server listens unless it is told otherwise.
const Address = "127.0.0.1:5037"

// Bounds of what is read from a server or a phone.
const (
	maxMessage = 1 << 16 // a list of devices, or an error
	maxOutput  = 1 << 20 // what a command prints
	maxFrame   = 1 << 20
)

// Client speaks to an adb server.
type Client struct {
	Address string // "" is [Address]
	// Start starts a server that does not listen; nil means the program adb does.
	Start func(ctx context.Context) error
}

// Device is a phone as the server sees it.
type Device struct {
	Serial string `json:"serial"`
	State  string `json:"state"` // "device" is good
	Model  string `json:"model,omitempty"`
}

// Problem says what is wrong with a phone and what to do about it, or "".
func (d Device) Problem() string {
	switch state, _, _ := strings.Cut(d.State, " "); state {
	case "device":
		return ""
	case "unauthorized", "authorizing":
		return "it does not trust this machine yet: unlock its screen and accept the key that it asks about"
	case "offline":
		return "it does not answer: unplug its cable and plug it in again"
	case "no":
		return "this machine may not use its USB device: install the udev rules of android-sdk-platform-tools-common, or run the adb server as root"
	default:
		return "it is in the state " + strconv.Quote(d.State) + ", in which nothing can be run on it"
	}
}

// FailError is the server's refusal, in its own words.
type FailError struct{ Service, Reason string }

func (e *FailError) Error() string {
	return fmt.Sprintf("the adb server refuses %s: %s", e.Service, e.Reason)
}

// dial connects, and starts the server if there is none.
func (c Client) dial(ctx context.Context) (net.Conn, error) {
	address := c.Address
	if address == "" {
		address = Address
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil || ctx.Err() != nil || c.Address != "" && c.Start == nil {
		if err != nil {
			err = fmt.Errorf("no adb server answers at %s: %w", address, err)
		}
		return conn, err
	}
	start := c.Start
	if start == nil {
		start = startServer
	}
	if err := start(ctx); err != nil {
		return nil, err
	}
	return d.DialContext(ctx, "tcp", address)
}

// startServer runs Debian's program, whose server stays.
func startServer(ctx context.Context) error {
	program, err := exec.LookPath("adb")
	if err != nil {
		return errors.New("adb is not installed: apt-get install adb")
	}
	if out, err := exec.CommandContext(ctx, program, "start-server").CombinedOutput(); err != nil {
		return fmt.Errorf("starting the adb server: %w: %.200s", err, out)
	}
	return nil
}

// Conn is a connection to a service that ends with a context.
type Conn struct {
	net.Conn
	r    *bufio.Reader
	stop func() bool
}

// Read reads what the service sends.
func (c *Conn) Read(b []byte) (int, error) { return c.r.Read(b) }

// Close ends the connection.
func (c *Conn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// Open connects and asks for services, one after another on the same connection. It ends
// with ctx.
func (c Client) Open(ctx context.Context, services ...string) (*Conn, error) {
	raw, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("adb: %w", err)
	}
	out := &Conn{Conn: raw, r: bufio.NewReader(raw), stop: context.AfterFunc(ctx, func() { _ = raw.Close() })}
	for _, s := range services {
		if err := out.ask(s); err != nil {
			_ = out.Close()
			switch {
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				err = fmt.Errorf("no answer in time to %s: a server that hangs is ended by adb kill-server (%w)", lab.Clip(s, 60), ctx.Err())
			case ctx.Err() != nil:
				err = ctx.Err()
			}
			return nil, fmt.Errorf("adb: %w", err)
		}
	}
	return out, nil
}

// ask sends a request: four digits of length, then its text; the answer is OKAY, or FAIL
// and a reason.
func (c *Conn) ask(service string) error {
	if len(service) > 0xffff {
		return fmt.Errorf("a request of %d bytes is too long for adb", len(service))
	}
	if _, err := fmt.Fprintf(c.Conn, "%04x%s", len(service), service); err != nil {
		return err
	}
	var status [4]byte
	if _, err := io.ReadFull(c.r, status[:]); err != nil {
		return fmt.Errorf("the connection ended before the answer to %s: %w", lab.Clip(service, 60), err)
	}
	switch string(status[:]) {
	case "OKAY":
		return nil
	case "FAIL":
		reason, err := readMessage(c.r)
		if err != nil {
			return fmt.Errorf("reading why the server refuses %s: %w", lab.Clip(service, 60), err)
		}
		return &FailError{lab.Clip(service, 60), strings.TrimSpace(reason)}
	}
	return fmt.Errorf("%q is no answer of an adb server to %s", status[:], lab.Clip(service, 60))
}

// readMessage reads four hexadecimal digits of length and so many bytes.
func readMessage(r io.Reader) (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 16)
	if err != nil || n > maxMessage {
		return "", fmt.Errorf("%q is no length of a message", digits[:])
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", err
	}
	return string(text), nil
}

// Devices lists the phones.
func (c Client) Devices(ctx context.Context) ([]Device, error) {
	conn, err := c.Open(ctx, "host:devices-l")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	text, err := readMessage(conn.r)
	if err != nil {
		return nil, fmt.Errorf("adb: the list of devices: %w", err)
	}
	return parseDevices(text), nil
}

// Track calls f with the list of phones now and whenever it changes, until ctx ends or the
// server does.
func (c Client) Track(ctx context.Context, f func([]Device)) error {
	conn, err := c.Open(ctx, "host:track-devices-l")
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		text, err := readMessage(conn.r)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("adb: watching the devices: %w", err)
		}
		f(parseDevices(text))
	}
}

// maxDevices bounds a list.
const maxDevices = 256

// stated finds the state in a line. A serial number may contain blanks: mDNS numbers a name that is taken, as in
// "adb-R58M123-x9 (2)._adb-tls-connect._tcp".
var stated = regexp.MustCompile(`[ \t]+((?:device|offline|unauthorized|authorizing|connecting|bootloader|recovery|rescue|sideload|host|` +
	`detached|unknown|no permissions)(?:[ \t;(]|$))`) // constant

// noSerial is what the server prints for a phone without a serial number.
const noSerial = "(no serial number)"

// parseDevices reads lines of a serial number, a state, and in the long form fields such as model:Pixel_6. A phone
// without a serial number, or with that of another phone, as cheap ones have, gets the name of its USB port, usb:1-1,
// which the server accepts in place of a serial number.
func parseDevices(text string) (list []Device) {
	places, same := []string{}, map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		serial, rest, ok := strings.Cut(line, " ")
		if m := stated.FindStringSubmatchIndex(line); m != nil {
			serial, rest, ok = line[:m[0]], line[m[2]:], true
		} else if before, after, tab := strings.Cut(line, "\t"); tab {
			serial, rest, ok = before, after, true
		}
		if !ok || len(list) == maxDevices {
			continue
		}
		d, place := Device{Serial: serial}, ""
		var state []string
		for _, word := range strings.Fields(rest) {
			key, value, field := strings.Cut(word, ":")
			switch {
			case field && key == "model":
				d.Model = strings.ReplaceAll(value, "_", " ")
			case field && key == "usb":
				place = word
			case !field && d.Model == "":
				state = append(state, word)
			}
		}
		if d.State = strings.Join(state, " "); d.State != "" {
			list, places = append(list, d), append(places, place)
			same[serial]++
		}
	}
	for i, d := range list {
		if places[i] != "" && (same[d.Serial] > 1 || d.Serial == noSerial) {
			list[i].Serial = places[i]
		}
	}
	return list
}

// Find returns the phone with that serial number, or the only one if it is "".
func (c Client) Find(ctx context.Context, serial string) (Device, error) {
	list, err := c.Devices(ctx)
	if err != nil {
		return Device{}, err
	}
	var serials []string
	for _, d := range list {
		if d.Serial == serial || serial == "" && len(list) == 1 {
			if p := d.Problem(); p != "" {
				return d, fmt.Errorf("adb: %s: %s", d.Serial, p)
			}
			return d, nil
		}
		if d.Problem() == "" {
			serials = append(serials, d.Serial)
		} else {
			serials = append(serials, d.Serial+" ("+d.State+")")
		}
	}
	switch {
	case len(list) == 0:
		return Device{}, errors.New("adb: no phone is plugged in, or USB debugging is off in its developer options")
	case serial == "":
		return Device{}, fmt.Errorf("adb: %d phones are plugged in: name one of %s", len(list), strings.Join(serials, ", "))
	}
	return Device{}, fmt.Errorf("adb: there is no phone %.60q: there are %s", serial, strings.Join(serials, ", "))
}

// Connect asks the server to connect to a phone at a network address, host:port.
func (c Client) Connect(ctx context.Context, address string) error {
	conn, err := c.Open(ctx, "host:connect:"+address)
	if err != nil {
		return err
	}
	defer conn.Close()
	text, err := readMessage(conn.r)
	if err == nil && !strings.HasPrefix(text, "connected to") && !strings.HasPrefix(text, "already connected") {
		err = errors.New(strings.TrimSpace(text))
	}
	if err != nil {
		return fmt.Errorf("adb: connecting to %s: %w", address, err)
	}
	return nil
}
