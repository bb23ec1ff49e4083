package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"eidetic/internal/panel"
	"eidetic/netlab/wifi"
)

// wifiConfig makes a device's port an access point. Its name and passphrase
// are the box's own, made once; the panel's list of devices tells them.
type wifiConfig struct {
	// Country says what the radio may do there: "DE".
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

// wifiLimit is how long the ports' watch waits for a radio; then it tries again.
const wifiLimit = 8 * time.Second

// radiate starts the access point of a port that is one.
func (p *ports) radiate(ctx context.Context, d *portDevice) error {
	c := d.config
	if c.WiFi == nil || d.point != nil {
		return nil
	}
	network, broken, err := wifi.LoadOrCreate(filepath.Join(p.data, "wifi.json"))
	if broken != nil {
		p.log.Warn("the Wi-Fi network was made anew: devices must join again", "error", broken)
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
	d.wifi = &panel.WiFi{SSID: network.SSID, Passphrase: network.Passphrase, QR: network.QR()}
	return nil
}
