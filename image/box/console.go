package box

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"rsc.io/qr"

	"eidetic/internal/keep/pin"
)

// Banner is the information on the box's screen.
type Banner struct {
	Version  string
	Hostname string
	Token    string
	Roles    Roles
	// Fingerprint is the SHA-256 of the panel's certificate; empty for a panel without TLS.
	Fingerprint string
	Health      string // "ok", or what is wrong
	Update      string // result of the last update, if a person should know it
}

// Text is the banner in at most 80 columns.
func (b Banner) Text() string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "  %-9s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&out, "\n  Eidetic %s\n\n", b.Version)
	if b.Roles.Address.IsValid() {
		scheme := "https"
		if b.Fingerprint == "" {
			scheme = "http"
		}
		or := "  or  "
		if b.Roles.Address.Is6() { // the line would be too long
			or = "\n" + strings.Repeat(" ", len("  Panel    "))
		}
		line("Panel", "%s://%s/%s%s://%s.local:8080/", scheme, netip.AddrPortFrom(b.Roles.Address, 8080), or, scheme, b.Hostname)
		if first, second := pin.Text(b.Fingerprint); first != "" {
			line("SHA-256", "%s", first)
			line("", "%s", second)
		}
		line("Token", "%s", b.Token)
		line("Uplink", "%s, %s", b.Roles.Uplink, b.Roles.Address)
	} else if b.Roles.Uplink != "" {
		line("Uplink", "%s, waiting for a lease: is its cable in?", b.Roles.Uplink)
		line("", "Another port: type  uplink NAME  and Enter; there are %s", strings.Join(b.Roles.ports(), ", "))
	} else {
		line("Uplink", "none yet: connect a port to a network that gives leases (DHCP)")
	}
	for _, d := range b.Roles.Devices {
		line("Device", "%s, the box is %s there", d.Name, d.Address.Addr())
	}
	for _, name := range b.Roles.Waiting {
		line("Waiting", "%s", name)
	}
	if len(b.Roles.Leased) > 0 {
		line("Warning", "%s has a lease, too: another network, or a device with a", strings.Join(b.Roles.Leased, ", "))
		line("", "DHCP server. To make it the uplink: type  uplink NAME  and Enter.")
	}
	line("Health", "%s", b.Health)
	if b.Update != "" {
		line("Update", "%s", b.Update)
	}
	return out.String() + "\n"
}

// Code is the address of the panel with the fingerprint of its certificate behind it, for a
// QR code; empty without both.
func (b Banner) Code() string {
	if !b.Roles.Address.IsValid() || b.Fingerprint == "" {
		return ""
	}
	return fmt.Sprintf("https://%s/access#sha256=%s", netip.AddrPortFrom(b.Roles.Address, 8080), b.Fingerprint)
}

// Console shows the banner on the box's terminals and keeps it up to date.
type Console struct {
	Root string // the file system, / on a box
	TTYs []string
	URL  string // of GET /api/v1/health
	// Lines are what a person types; nil takes nothing.
	Lines <-chan string
}

// Show writes the banner to every terminal whenever it changes, until ctx is done, and
// carries out what a person types there.
func (c Console) Show(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	shown, answer := "", ""
	for {
		b := c.read(ctx, client)
		text := b.Text()
		if answer != "" {
			text += "  " + answer + "\n\n"
		}
		if text != shown && ctx.Err() == nil {
			c.write(text, b.Code())
			shown = text
		}
		select {
		case <-ctx.Done():
			return nil
		case line := <-c.Lines:
			answer = c.obey(line, b.Roles)
			shown = "" // what was typed is on the screen
		case <-time.After(2 * time.Second):
		}
	}
}

// obey carries out a typed line and returns the answer.
func (c Console) obey(line string, roles Roles) string {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return ""
	}
	if len(fields) != 2 || fields[0] != "uplink" {
		return "There is one command: uplink NAME, with the name of a port."
	}
	name := fields[1]
	if !isPort(name) || !slices.Contains(roles.ports(), name) {
		return fmt.Sprintf("There is no port %.20q; there are %s.", name, strings.Join(roles.ports(), ", "))
	}
	if name == roles.Uplink {
		return name + " is the uplink already."
	}
	if err := writeFile(c.path(UplinkRequest), []byte(name+"\n"), 0o644); err != nil {
		return "The uplink was not changed: " + err.Error()
	}
	return name + " becomes the uplink; the box restarts. A box.uplink in the configuration goes before it."
}

func (c Console) path(name string) string { return filepath.Join(c.Root, name) }

// read collects the banner's current fields; fields that cannot be read stay empty.
func (c Console) read(ctx context.Context, client *http.Client) Banner {
	b := Banner{Health: "ok"}
	b.Version, _ = Updater{Root: c.Root}.version()
	for name, field := range map[string]*string{"etc/hostname": &b.Hostname, TokenFile: &b.Token} {
		if text, err := os.ReadFile(c.path(name)); err == nil {
			*field = strings.TrimSpace(string(text))
		}
	}
	if text, err := os.ReadFile(c.path(PortsFile)); err == nil {
		_ = json.Unmarshal(text, &b.Roles) // a partial result is better than none
	}
	if s, err := (Receiver{Root: c.Root}).Status(); err == nil {
		b.Update = s.text()
	}
	health, err := readHealth(ctx, client, c.URL)
	if err != nil {
		b.Health = "not yet: " + err.Error()
	}
	if fingerprint, err := pin.Parse(health.Fingerprint); err == nil {
		b.Fingerprint = fingerprint
	}
	return b
}

// write clears each terminal and shows the text, and below it the code where there is room.
// Terminals that do not exist are skipped.
func (c Console) write(text, code string) {
	for _, tty := range c.TTYs {
		f, err := os.OpenFile(c.path(tty), os.O_WRONLY|os.O_APPEND|unix.O_NOCTTY, 0)
		if err != nil {
			continue
		}
		shown := text
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err == nil && code != "" {
			shown += codeFor(code, int(size.Col), int(size.Row)-strings.Count(text, "\n")-1)
		}
		_, _ = f.WriteString("\x1b[2J\x1b[H" + strings.ReplaceAll(shown, "\n", "\r\n"))
		_ = f.Close()
	}
}

// codeFor draws a QR code in at most so many columns and rows, two modules in a row of
// characters, light on a dark screen; it returns "" where there is no room. A serial port
// has no size, and gets none.
func codeFor(text string, columns, rows int) string {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return ""
	}
	const quiet = 2 // modules of light around it; phones read it with fewer than the standard's four
	side := code.Size + 2*quiet
	if columns < side+2 || rows < (side+1)/2 {
		return ""
	}
	var out strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		out.WriteString("  ")
		for x := -quiet; x < code.Size+quiet; x++ {
			// Black says false outside the code, which is light.
			upper, lower := !code.Black(x, y), !code.Black(x, y+1) && y+1 < code.Size+quiet
			switch {
			case upper && lower:
				out.WriteRune('█')
			case upper:
				out.WriteRune('▀')
			case lower:
				out.WriteRune('▄')
			default:
				out.WriteRune(' ')
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}
