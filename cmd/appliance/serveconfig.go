package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"

	"eidetic/image/box"

	"github.com/goccy/go-yaml"
)

// serveConfig is the whole configuration file; each component declares its part.
type serveConfig struct {
	// Log is the least level that is logged: debug, info, warn or error.
	Log     string        `yaml:"log"`
	Panel   panelConfig   `yaml:"panel"`
	Network networkConfig `yaml:"network"`
	// Devices are what is plugged into network ports; a box knows its ports by
	// itself, and takes from here only what is not as usual.
	Devices []deviceConfig `yaml:"devices"`
	Box     box.Config     `yaml:"box"`
}

// networkConfig says how origins are reached while a page is recorded.
type networkConfig struct {
	// Resolver is the name server to ask, address:port; without it, the system's.
	Resolver string `yaml:"resolver"`
	// Trust are certificates (PEM), or the name of a file of them, that are
	// trusted besides the system's: for test servers with an authority of their own.
	Trust string `yaml:"trust"`
}

// resolver is zero without one; the configuration was checked.
func (c networkConfig) resolver() netip.AddrPort {
	at, _ := netip.ParseAddrPort(c.Resolver)
	return at
}

// roots reads Trust.
func (c networkConfig) roots() (string, error) {
	if c.Trust == "" {
		return "", nil
	}
	text, err := []byte(c.Trust), error(nil)
	if !strings.Contains(c.Trust, "-----BEGIN ") {
		text, err = os.ReadFile(c.Trust)
	}
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		err = fmt.Errorf("%.100q holds no certificate in PEM form", c.Trust)
	}
	if err != nil {
		return "", fmt.Errorf("network.trust: %w", err)
	}
	return string(text), nil
}

// panelConfig says where the panel listens when systemd passes no socket.
type panelConfig struct {
	Listen string `yaml:"listen"` // host:port
}

// defaultServeConfig is what a box runs with that was never configured.
func defaultServeConfig() serveConfig {
	return serveConfig{Log: "info", Panel: panelConfig{Listen: "127.0.0.1:8080"}, Box: box.DefaultConfig()}
}

// maxConfig bounds what is read of a configuration file.
const maxConfig = 1 << 20

// loadServeConfig reads file over the defaults. An unknown field, a wrong type
// and a value out of range are errors that name file, line and column.
func loadServeConfig(file string) (serveConfig, error) {
	cfg := defaultServeConfig()
	if file == "" {
		return cfg, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return cfg, err
	}
	if info.Size() > maxConfig {
		return cfg, fmt.Errorf("%s: %d bytes are too many for a configuration (at most %d)", file, info.Size(), maxConfig)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return cfg, err
	}
	return cfg, parseServeConfig(file, text, &cfg)
}

// parseServeConfig decodes text, whose name is file, over cfg.
func parseServeConfig(file string, text []byte, cfg *serveConfig) error {
	if err := yaml.UnmarshalWithOptions(text, cfg, yaml.Strict()); err != nil {
		return fmt.Errorf("%s: %s", file, yaml.FormatError(err, false, true))
	}
	if _, err := cfg.level(); err != nil {
		return atField(file, text, "$.log", err)
	}
	if _, _, err := net.SplitHostPort(cfg.Panel.Listen); err != nil {
		return atField(file, text, "$.panel.listen", fmt.Errorf("%w; write host:port, for example 127.0.0.1:8080", err))
	}
	if _, err := netip.ParseAddrPort(cfg.Network.Resolver); cfg.Network.Resolver != "" && err != nil {
		return atField(file, text, "$.network.resolver", fmt.Errorf("%q is not an address and a port, such as 192.0.2.53:53", cfg.Network.Resolver))
	}
	if wrong := validateDevices(cfg.Devices); wrong != nil {
		return atField(file, text, "$.devices"+wrong.field, wrong.err)
	}
	var field *box.FieldError
	if err := cfg.Box.Validate(); errors.As(err, &field) {
		return atField(file, text, "$.box."+field.Field, field.Err)
	}
	return nil
}

// level parses Log.
func (c serveConfig) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log)); err != nil {
		return 0, fmt.Errorf("log level %q is not one of debug, info, warn, error", c.Log)
	}
	return level, nil
}

// atField adds to err the file and the lines around the field that it is about.
func atField(file string, text []byte, path string, err error) error {
	field, pathErr := yaml.PathString(path)
	if pathErr != nil {
		return errors.Join(err, pathErr)
	}
	source, sourceErr := field.AnnotateSource(text, false)
	if sourceErr != nil { // the field is not in the file: a default, or a form we do not point into
		return fmt.Errorf("%s: %s: %w", file, path[2:], err)
	}
	return fmt.Errorf("%s: %s: %w\n%s", file, path[2:], err, source)
}
