package wifi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Network is what a person needs to join.
type Network struct {
	SSID       string `json:"ssid"`
	Passphrase string `json:"passphrase"`
}

// Check says what is wrong with a network.
func (n Network) Check() error {
	if len(n.SSID) < 1 || len(n.SSID) > 32 {
		return fmt.Errorf("the name %q of the network has %d bytes; 1 to 32 are allowed", n.SSID, len(n.SSID))
	}
	if len(n.Passphrase) < 8 || len(n.Passphrase) > 63 || strings.ContainsFunc(n.Passphrase, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("the passphrase needs 8 to 63 ASCII characters (IEEE 802.11, J.4)")
	}
	return nil
}

// QR is the text of a QR code with which phones join.
func (n Network) QR() string {
	escape := strings.NewReplacer(`\`, `\\`, `;`, `\;`, `,`, `\,`, `"`, `\"`, `:`, `\:`)
	return "WIFI:T:WPA;S:" + escape.Replace(n.SSID) + ";P:" + escape.Replace(n.Passphrase) + ";;"
}

// letters of a passphrase: none that a person takes for another.
const letters = "abcdefghjkmnpqrstuvwxyz23456789"

// NewNetwork makes one with a passphrase of 79 random bits, and a name that
// tells boxes apart.
func NewNetwork() Network {
	pick := func(n int) string {
		out := make([]byte, 0, n)
		b := make([]byte, 1)
		for len(out) < n {
			_, _ = rand.Read(b) // crypto/rand never returns an error
			if v := int(b[0]) & 31; v < len(letters) {
				out = append(out, letters[v])
			}
		}
		return string(out)
	}
	return Network{SSID: "eidetic-" + pick(4), Passphrase: pick(4) + "-" + pick(4) + "-" + pick(4) + "-" + pick(4)}
}

const maxFile = 4096

// Kept returns the box's own network, made at the first call and kept in a
// file that only its owner may read. A broken file is replaced, and said.
func Kept(file string) (n Network, broken error, err error) {
	f, err := os.Open(file)
	if err == nil {
		b, rerr := io.ReadAll(io.LimitReader(f, maxFile))
		_ = f.Close() // it was only read
		if broken = errors.Join(rerr, json.Unmarshal(b, &n)); broken == nil {
			broken = n.Check()
		}
		if broken == nil {
			return n, nil, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return n, nil, fmt.Errorf("read the Wi-Fi network: %w", err)
	}
	n = NewNetwork()
	b, err := json.Marshal(n)
	if err == nil {
		err = replace(file, append(b, '\n'))
	}
	if err != nil {
		return n, broken, fmt.Errorf("keep the Wi-Fi network: %w", err)
	}
	return n, broken, nil
}

// replace writes a file as a whole, on the medium before it has its name.
func replace(file string, b []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".wifi-") // only the owner may read it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the other error counts
		}
	}()
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// CheckChannel says what is wrong with a channel; 0 stands for the default.
// Those where radar has to be listened for first (52 to 144, DFS) are left out:
// an access point must be silent there for one to ten minutes.
func CheckChannel(n int) error {
	switch {
	case n >= 0 && n <= 13, n >= 36 && n <= 48 && n%4 == 0, n >= 149 && n <= 165 && n%4 == 1:
		return nil
	case n >= 52 && n <= 144 && n%4 == 0:
		return fmt.Errorf("channel %d: radar has to be listened for there, which the box does not; take 36, 40, 44 or 48, or 149 to 165 where the country allows them", n)
	}
	return fmt.Errorf("channel %d: 1 to 13 (2.4 GHz), or 36, 40, 44, 48, 149, 153, 157, 161 or 165 (5 GHz)", n)
}

// hostapd returns the text of hostapd.conf.
func (c Config) hostapd() (string, error) {
	if len(c.Interface) > 15 || !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`).MatchString(c.Interface) {
		return "", fmt.Errorf("%q is not the name of a network interface, such as wlan0", c.Interface)
	}
	if c.Dir == "" || strings.ContainsAny(c.Dir, "\r\n") {
		return "", errors.New("a folder for hostapd's files is required")
	}
	if err := c.Network.Check(); err != nil {
		return "", err
	}
	if err := CheckChannel(c.Channel); err != nil {
		return "", err
	}
	channel, mode := c.Channel, "g"
	switch {
	case channel == 0:
		channel = 6
	case channel > 13:
		mode = "a"
	}
	var b strings.Builder
	set := func(name, format string, args ...any) { fmt.Fprintf(&b, name+"="+format+"\n", args...) }
	set("interface", "%s", c.Interface)
	set("driver", "nl80211")
	set("ctrl_interface", "%s", filepath.Join(c.Dir, "hostapd"))
	set("ssid2", "%s", hex.EncodeToString([]byte(c.Network.SSID))) // whatever bytes it has
	set("utf8_ssid", "1")
	set("hw_mode", "%s", mode)
	set("channel", "%d", channel)
	set("ieee80211n", "1")
	set("wmm_enabled", "1")
	if c.Country != "" {
		if !regexp.MustCompile(`^[A-Z]{2}$`).MatchString(c.Country) {
			return "", fmt.Errorf("country %q: two capital letters, such as DE", c.Country)
		}
		set("country_code", "%s", c.Country)
		set("ieee80211d", "1")
	}
	set("wpa", "2")
	set("wpa_key_mgmt", "WPA-PSK WPA-PSK-SHA256")
	set("rsn_pairwise", "CCMP")
	set("ieee80211w", "1") // protected management frames where the device can
	set("wpa_passphrase", "%s", c.Network.Passphrase)
	set("ap_isolate", "1") // stations reach the box, and not each other
	return b.String(), nil
}
