package service

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"eidetic/image/box"
	"eidetic/internal/box/automation"
	"eidetic/internal/box/bisects"
	"eidetic/internal/box/mail"
	"eidetic/internal/fleet"
	"eidetic/internal/keep/retention"
	"eidetic/internal/plan"
	"eidetic/internal/run/sandbox"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"

	"eidetic/internal/base/bounded"
	"github.com/goccy/go-yaml"
)

// Config is the whole configuration file; each component declares its part.
type Config struct {
	// Log is the least level that is logged: debug, info, warn or error.
	Log     string        `yaml:"log"`
	Panel   panelConfig   `yaml:"panel"`
	Network networkConfig `yaml:"network"`
	// Recordings says what reading one may take.
	Recordings recordingsConfig `yaml:"recordings"`
	// Retention says how long the evidence of runs is kept.
	Retention retention.Policy `yaml:"retention"`
	// Virtual is for the browsers of this machine, which a box does not have.
	Virtual virtualConfig `yaml:"virtual"`
	// Processors are this machine's.
	Processors processorsConfig `yaml:"processors"`
	// Browsers are what plans may name besides chromium and firefox: each is what a plan could say of a browser, with
	// programs, profiles and other files of this machine, which only its admin names.
	Browsers plan.Browsers `yaml:"browsers"`
	// Apps are programs that plans may start in place of a browser.
	Apps plan.Apps `yaml:"apps"`
	// Devices are what is plugged into network ports; a box knows its ports by
	// itself, and takes from here only what is not as usual.
	Devices []deviceConfig `yaml:"devices"`
	Box     box.Config     `yaml:"box"`
	// Webhooks says what the box may call.
	Webhooks webhooksConfig `yaml:"webhooks"`
	// Mail is the server to which mail is handed in.
	Mail mail.Server `yaml:"mail"`
	// Repositories are where schedules take revisions from, by name.
	Repositories map[string]bisects.Repository `yaml:"repositories"`
	// Fleet is for a box that belongs to a head.
	Fleet fleetConfig `yaml:"fleet"`
}

// webhooksConfig says which addresses webhooks may call besides public ones.
type webhooksConfig struct {
	// Allow names hosts, or addresses, that may be in private networks and may be called
	// without TLS. This machine and devices are called only at an address that is named.
	Allow []string `yaml:"allow"`
}

// check returns the field that is wrong, and why, or nil.
func (c webhooksConfig) check() (field string, err error) {
	for i, host := range c.Allow {
		if _, err := netip.ParseAddr(host); err != nil && (len(host) > 253 || !hostName.MatchString(host)) {
			return fmt.Sprintf(".allow[%d]", i), fmt.Errorf("%.100q is neither a name such as ci.example.org nor an address; write it without a port", host)
		}
	}
	return "", nil
}

// networkConfig says how origins are reached while a page is recorded.
type networkConfig struct {
	// Resolver is the name server to ask, address:port; without it, the system's.
	Resolver string `yaml:"resolver"`
	// Trust are certificates (PEM), or the name of a file of them, that are
	// trusted besides the system's: for test servers with an authority of their own.
	Trust string `yaml:"trust"`
	// AllowPrivate lets recordings reach this machine and private networks: for own servers.
	AllowPrivate bool `yaml:"allow_private"`
	// InsecureOrigin leaves the certificates of origins unverified.
	InsecureOrigin bool `yaml:"insecure_origin"`
}

// virtualConfig configures the virtual device.
type virtualConfig struct {
	// NoSandbox lets browsers work without their own sandbox, where the machine refuses that.
	NoSandbox bool `yaml:"no_sandbox"`
	// Labels are what plans of a fleet may ask for.
	Labels map[string]string `yaml:"labels"`
}

// processorsConfig says what runs may do to the machine.
type processorsConfig struct {
	// Keep leaves governor and turbo as they are.
	Keep bool `yaml:"keep"`
}

// reach says how origins are reached; roots are those of Roots, own is where the panel listens.
func (c networkConfig) reach(roots string, own net.Addr) sandbox.Reach {
	r := sandbox.Reach{Resolver: c.resolver(), Roots: roots, Private: c.AllowPrivate, AnyCertificate: c.InsecureOrigin}
	if at, err := netip.ParseAddrPort(own.String()); err == nil { // a Unix socket has none
		r.Own = append(r.Own, at)
	}
	return r
}

// recordingsConfig bounds what the reading of a recording takes.
type recordingsConfig struct {
	// Memory is the share of the machine's memory, or of that of the service's control group, in percent.
	Memory int `yaml:"memory_percent"`
}

// share is the default where none is set.
func (c recordingsConfig) share() float64 {
	if c.Memory == 0 {
		return archive.DefaultShare
	}
	return float64(c.Memory) / 100
}

// resolver is the zero AddrPort when none is set; the configuration was checked.
func (c networkConfig) resolver() netip.AddrPort {
	at, _ := netip.ParseAddrPort(c.Resolver)
	return at
}

// ErrTrust is in the error of a configuration whose only mistake is network.trust.
var ErrTrust = errors.New("write the certificates themselves (PEM), or the name of a file of them") // constant

// Roots returns the certificates of Trust, in PEM form.
func (c networkConfig) Roots() (string, error) {
	if c.Trust == "" {
		return "", nil
	}
	read := ca.ReadAuthorities
	if strings.Contains(c.Trust, "-----BEGIN ") {
		read = func(text string) (string, error) { return ca.Authorities([]byte(text)) }
	}
	found, err := read(c.Trust)
	if err != nil {
		return "", fmt.Errorf("%w; %w", err, ErrTrust)
	}
	return found, nil
}

// panelConfig says how the panel is reached.
type panelConfig struct {
	// Listen is where it listens when systemd passes no socket.
	Listen string `yaml:"listen"` // host:port
	// Hosts are names by which it may be called besides addresses, localhost and
	// the box's own name: those that somebody has put into a name server.
	Hosts []string `yaml:"hosts"`
	// PlainHTTP serves other machines without TLS: for a panel behind a proxy that has it.
	PlainHTTP bool `yaml:"plain_http"`
}

// hostNames are the names by which the panel may be called besides addresses and localhost.
func (c Config) hostNames() []string {
	return append([]string{c.Box.Hostname, c.Box.Hostname + ".local"}, c.Panel.Hosts...)
}

// hostName is a name of DNS (RFC 1123, section 2.1), without a port.
var hostName = regexp.MustCompile(`^(?i:[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(?i:\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`) // constant

// checkHosts returns the field that is wrong, and why, or nil.
func (c panelConfig) checkHosts() (field string, err error) {
	for i, host := range c.Hosts {
		if len(host) > 253 || !hostName.MatchString(host) {
			return fmt.Sprintf(".hosts[%d]", i), fmt.Errorf("%.100q is not a name such as lab.example.org; write it without a port", host)
		}
	}
	return "", nil
}

// DefaultConfig is the configuration of a box that was never configured.
func DefaultConfig() Config {
	return Config{Log: "info", Panel: panelConfig{Listen: "127.0.0.1:8080"}, Box: box.DefaultConfig()}
}

// LoadConfig reads the file over the defaults; no file name means the defaults.
// An unknown field, a wrong type and a value out of range are errors that name
// file, line and column.
func LoadConfig(file string) (Config, error) {
	cfg, _, err := loadConfig(file)
	return cfg, err
}

// loadConfig is LoadConfig; it returns the text, too.
func loadConfig(file string) (cfg Config, text []byte, err error) {
	cfg = DefaultConfig()
	if file == "" {
		return cfg, nil, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return cfg, nil, err
	}
	if info.Size() > box.MaxConfig {
		return cfg, nil, fmt.Errorf("%s: %d bytes are too many for a configuration (at most %d)", file, info.Size(), box.MaxConfig)
	}
	if text, err = os.ReadFile(file); err != nil {
		return cfg, nil, err
	}
	text = bounded.Source(text)
	err = ParseConfig(file, text, &cfg)
	return cfg, text, err
}

// headFields are what the head of a fleet takes from a configuration: it has no device, and its flags say where it
// listens. A dot leads to a field of a field.
var headFields = []string{"log", "mail", "network.resolver", "network.trust", "repositories", "retention", "webhooks"} // constant

// LoadHeadConfig is [LoadConfig] for the head of a fleet. What only a box has is an error.
func LoadHeadConfig(file string) (Config, error) {
	cfg, text, err := loadConfig(file)
	if err != nil || file == "" {
		return cfg, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return cfg, fmt.Errorf("%s: %w", file, err)
	}
	for name, value := range fields {
		names := []string{name}
		if within, ok := value.(map[string]any); ok && name == "network" {
			names = nil
			for field := range within {
				names = append(names, name+"."+field)
			}
		}
		for _, name := range names {
			if !slices.Contains(headFields, name) {
				return cfg, atField(file, text, "$."+name,
					fmt.Errorf("this is a box's; a head takes %s", strings.Join(headFields, ", ")))
			}
		}
	}
	return cfg, nil
}

// LoadBoxConfig is [LoadConfig] for the services of a box: they start whatever the
// file says, because the panel may be the only way to correct it. With a problem
// it returns what is used instead of the file, in words.
func LoadBoxConfig(file string) (cfg Config, instead string, problem error) {
	cfg, err := LoadConfig(file)
	switch {
	case err == nil:
		return cfg, "", nil
	case errors.Is(err, ErrTrust):
		cfg.Network.Trust = ""
		return cfg, "network.trust of the configuration cannot be used: only the authorities that the system knows are trusted",
			withoutSource(err)
	}
	return DefaultConfig(), "the configuration has a mistake: the defaults are used", withoutSource(err)
}

// ParseConfig decodes text over cfg; file is its name, for errors.
func ParseConfig(file string, text []byte, cfg *Config) error {
	text = bounded.Source(text)
	err := bounded.YAML(text, func() error {
		var anything any
		if err := yaml.Unmarshal(text, &anything); err == nil && anything == nil {
			return nil // there are only comments, and decoding them would zero cfg
		}
		return bounded.Strict(text, cfg)
	})
	if err != nil {
		return fmt.Errorf("%s: %s", file, yaml.FormatError(err, false, true))
	}
	if _, err := cfg.Level(); err != nil {
		return atField(file, text, "$.log", err)
	}
	if _, _, err := net.SplitHostPort(cfg.Panel.Listen); err != nil {
		return atField(file, text, "$.panel.listen", fmt.Errorf("%w; write host:port, for example 127.0.0.1:8080", err))
	}
	if field, err := cfg.Panel.checkHosts(); err != nil {
		return atField(file, text, "$.panel"+field, err)
	}
	if field, err := cfg.Webhooks.check(); err != nil {
		return atField(file, text, "$.webhooks"+field, err)
	}
	if field, err := cfg.Mail.Check(); err != nil {
		return atField(file, text, "$.mail"+field, err)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Repositories)) {
		at := "$.repositories"
		err := automation.CheckName(name)
		if err == nil {
			var field string
			field, err = cfg.Repositories[name].Check()
			at += "." + name + field
		}
		if err != nil {
			return atField(file, text, at, err)
		}
	}
	if _, err := netip.ParseAddrPort(cfg.Network.Resolver); cfg.Network.Resolver != "" && err != nil {
		return atField(file, text, "$.network.resolver",
			fmt.Errorf("%q is not an address and a port, such as 192.0.2.53:53", cfg.Network.Resolver))
	}
	if m := cfg.Recordings.Memory; m < 0 || m > 80 {
		return atField(file, text, "$.recordings.memory_percent",
			fmt.Errorf("%d is outside 1 … 80: the browser and the recorder need the rest; leave it out for %.0f", m, 100*archive.DefaultShare))
	}
	if field, err := cfg.Retention.Check(); err != nil {
		return atField(file, text, "$.retention."+field, err)
	}
	if field, err := cfg.Browsers.Check(); err != nil {
		return atField(file, text, "$.browsers"+field, err)
	}
	if field, err := cfg.Apps.Check(); err != nil {
		return atField(file, text, "$.apps"+field, err)
	}
	if wrong := validateDevices(cfg.Devices, cfg.Box.Uplink); wrong != nil {
		return atField(file, text, "$.devices"+wrong.field, wrong.err)
	}
	if err := fleet.CheckLabels(cfg.Fleet.Labels); err != nil {
		return atField(file, text, "$.fleet.labels", err)
	}
	if err := fleet.CheckLabels(cfg.Virtual.Labels); err != nil {
		return atField(file, text, "$.virtual.labels", err)
	}
	var field *box.FieldError
	if err := cfg.Box.Validate(); errors.As(err, &field) {
		return atField(file, text, "$.box."+field.Field, field.Err)
	}
	if _, err := cfg.Network.Roots(); err != nil { // the last: see ErrTrust
		return atField(file, text, "$.network.trust", err)
	}
	return nil
}

// Level parses Log.
func (c Config) Level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log)); err != nil {
		return 0, fmt.Errorf("log level %q is not one of debug, info, warn, error", c.Log)
	}
	return level, nil
}

// atField adds to err the file and the lines around the field at path.
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

// CheckBoxConfig checks the whole file, with all its components. With an error it
// returns what [LoadBoxConfig] lets the service run with.
func CheckBoxConfig(name string, text []byte) (box.Config, error) {
	cfg := DefaultConfig()
	err := ParseConfig(name, text, &cfg)
	if err != nil && !errors.Is(err, ErrTrust) {
		return box.DefaultConfig(), withoutSource(err) // cfg holds half of the file
	}
	return cfg.Box, withoutSource(err)
}

// withoutSource returns err without the lines of the configuration that it quotes
// below its first line: they may hold passwords, and the error goes to the journal.
func withoutSource(err error) error {
	if err == nil {
		return nil
	}
	return firstLineError{err}
}

// firstLineError prints the first line of an error.
type firstLineError struct{ error }

func (e firstLineError) Error() string {
	line, _, _ := strings.Cut(e.error.Error(), "\n")
	return line
}

func (e firstLineError) Unwrap() error { return e.error }
