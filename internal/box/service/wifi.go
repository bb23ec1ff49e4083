package service

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"eidetic/internal/web/panel"
	"eidetic/netlab/wifi"
)

// wifiConfig makes a device's port an access point. The network's name and
// passphrase are made once and kept; the panel's list of devices shows them.
type wifiConfig struct {
	// Country is the country whose rules the radio keeps: "DE".
	Country string `yaml:"country"`
	// Channel is 1 to 13, or 36, 40, 44, 48, 149, 153, 157, 161 or 165; 6 without it.
	Channel int `yaml:"channel"`
}

func (c *wifiConfig) validate() error {
	if c.Country != "" && !regexp.MustCompile(`^[A-Z]{2}$`).MatchString(c.Country) {
		return fmt.Errorf("country %q: two capital letters, such as DE", c.Country)
	}
	return wifi.CheckChannel(c.Channel)
}

// wifiLimit is how long the ports' watch waits for a radio before it tries again later.
const wifiLimit = 8 * time.Second

// startAccessPoint starts the access point of a port whose configuration asks for one.
func (p *ports) startAccessPoint(ctx context.Context, d *portDevice) error {
	c := d.config
	if c.WiFi == nil || d.point != nil {
		return nil
	}
	network, broken, err := wifi.LoadOrCreate(filepath.Join(p.data, "wifi.json"))
	if broken != nil {
		p.log.Warn("the Wi-Fi network has a new name and passphrase: devices must join again", "error", broken)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wifiLimit)
	defer cancel()
	point, err := wifi.Start(ctx, wifi.Config{
		Interface: c.Port, Network: network, Country: c.WiFi.Country, Channel: c.WiFi.Channel,
		Dir: filepath.Join(os.TempDir(), "appliance-wifi"), Log: p.log, // on a box that is memory, and private
	})
	if err != nil {
		return err
	}
	p.log.Info("devices can join by Wi-Fi", "port", c.Port, "ssid", network.SSID)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.point = point
	d.wifi = &panel.WiFi{SSID: network.SSID, Passphrase: network.Passphrase.Reveal(), QR: network.QR()}
	return nil
}
