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

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/lab"
)

// Network is what a device needs to join.
type Network struct {
	SSID       string     `json:"ssid"`
	Passphrase lab.Secret `json:"passphrase"`
}

// MarshalJSON implements json.Marshaler, with the passphrase: so the box keeps its network.
func (n Network) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"ssid": n.SSID, "passphrase": n.Passphrase.Reveal()})
}

// Check returns an error that says what is wrong with a network, or nil.
func (n Network) Check() error {
	if len(n.SSID) < 1 || len(n.SSID) > 32 {
		return fmt.Errorf("the name %q of the network has %d bytes; 1 to 32 are allowed", n.SSID, len(n.SSID))
	}
	if secret := n.Passphrase.Reveal(); len(secret) < 8 || len(secret) > 63 || strings.ContainsFunc(secret,
		func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("the passphrase needs 8 to 63 ASCII characters (IEEE 802.11, J.4)")
	}
	return nil
}

// QR returns the text of the QR code with which phones join.
func (n Network) QR() string {
	escape := strings.NewReplacer(`\`, `\\`, `;`, `\;`, `,`, `\,`, `"`, `\"`, `:`, `\:`)
	return "WIFI:T:WPA;S:" + escape.Replace(n.SSID) + ";P:" + escape.Replace(n.Passphrase.Reveal()) + ";;"
}

// letters of a passphrase, without those that people confuse.
const letters = "abcdefghjkmnpqrstuvwxyz23456789"

// NewNetwork returns a network with a random name, which distinguishes boxes, and a
// passphrase of 79 random bits.
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
	return Network{SSID: "eidetic-" + pick(4), Passphrase: lab.NewSecret(pick(4) + "-" + pick(4) + "-" + pick(4) + "-" + pick(4))}
}

const maxFile = 4096

// LoadOrCreate returns the box's own network from a file that only its owner can
// read. Without the file it makes a network and saves it; a broken file is replaced
// too, and broken says what was wrong with it.
func LoadOrCreate(file string) (n Network, broken error, err error) {
	f, err := os.Open(file)
	if err == nil {
		b, rerr := io.ReadAll(io.LimitReader(f, maxFile))
		_ = f.Close() // the file was only read
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
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err == nil {
		err = atomicfile.WriteFile(file, append(b, '\n'), 0o600)
	}
	if err != nil {
		return n, broken, fmt.Errorf("save the Wi-Fi network: %w", err)
	}
	return n, broken, nil
}

// CheckChannel returns an error that says what is wrong with a channel, or nil; 0 is
// the default. Channels 52 to 144 are left out, because on these an access point
// must detect radar first (DFS), silently for one to ten minutes.
func CheckChannel(n int) error {
	switch {
	case n >= 0 && n <= 13, n >= 36 && n <= 48 && n%4 == 0, n >= 149 && n <= 165 && n%4 == 1:
		return nil
	case n >= 52 && n <= 144 && n%4 == 0:
		return fmt.Errorf("channel %d needs radar detection (DFS), which the box does not do; "+
			"choose 36, 40, 44 or 48, or 149 to 165 where the country allows them", n)
	}
	return fmt.Errorf("channel %d does not exist; choose 1 to 13 (2.4 GHz), or 36, 40, 44, 48, 149, 153, 157, 161 or 165 (5 GHz)", n)
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
	set("ssid2", "%s", hex.EncodeToString([]byte(c.Network.SSID))) // a name can have any bytes
	set("utf8_ssid", "1")
	set("hw_mode", "%s", mode)
	set("channel", "%d", channel)
	set("ieee80211n", "1")
	set("wmm_enabled", "1")
	if c.Country != "" {
		if !regexp.MustCompile(`^[A-Z]{2}$`).MatchString(c.Country) {
			return "", fmt.Errorf("country %q is not two capital letters, such as DE", c.Country)
		}
		set("country_code", "%s", c.Country)
		set("ieee80211d", "1")
	}
	set("wpa", "2")
	set("wpa_key_mgmt", "WPA-PSK WPA-PSK-SHA256")
	set("rsn_pairwise", "CCMP")
	set("ieee80211w", "1") // protected management frames for devices that support them
	set("wpa_passphrase", "%s", c.Network.Passphrase.Reveal())
	set("ap_isolate", "1") // stations reach the box but not each other
	return b.String(), nil
}
