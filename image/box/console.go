package box

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Banner is the information on the box's screen.
type Banner struct {
	Version  string
	Hostname string
	Token    string
	Roles    Roles
	Health   string // "ok", or what is wrong
	Update   string // result of the last update, if a person should know it
}

// Text is the banner in at most 80 columns.
func (b Banner) Text() string {
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "  %-9s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&out, "\n  Eidetic %s\n\n", b.Version)
	if b.Roles.Address.IsValid() {
		line("Panel", "http://%s/  or  http://%s.local:8080/", netip.AddrPortFrom(b.Roles.Address, 8080), b.Hostname)
		line("Token", "%s", b.Token)
		line("Uplink", "%s, %s", b.Roles.Uplink, b.Roles.Address)
	} else if b.Roles.Uplink != "" {
		line("Uplink", "%s, waiting for a lease: is its cable in?", b.Roles.Uplink)
	} else {
		line("Uplink", "none yet: connect a port to a network that gives leases (DHCP)")
	}
	for _, d := range b.Roles.Devices {
		line("Device", "%s, the box is %s there", d.Name, d.Address.Addr())
	}
	for _, name := range b.Roles.Waiting {
		line("Waiting", "%s", name)
	}
	line("Health", "%s", b.Health)
	if b.Update != "" {
		line("Update", "%s", b.Update)
	}
	return out.String() + "\n"
}

// Console shows the banner on the box's terminals and keeps it up to date.
type Console struct {
	Root string // the file system, / on a box
	TTYs []string
	URL  string // of GET /api/v1/health
}

// Show writes the banner to every terminal whenever it changes, until ctx is done.
func (c Console) Show(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	shown := ""
	for {
		text := c.read(ctx, client).Text()
		if text != shown && ctx.Err() == nil {
			c.write(text)
			shown = text
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Second):
		}
	}
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
	if err := askHealth(ctx, client, c.URL); err != nil {
		b.Health = "not yet: " + err.Error()
	}
	return b
}

// write clears each terminal and shows the text. Terminals that do not exist are skipped.
func (c Console) write(text string) {
	for _, tty := range c.TTYs {
		f, err := os.OpenFile(c.path(tty), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			continue
		}
		_, _ = f.WriteString("\x1b[2J\x1b[H" + strings.ReplaceAll(text, "\n", "\r\n"))
		_ = f.Close()
	}
}
