package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"eidetic/image/box"
	"eidetic/systemd"

	"github.com/goccy/go-yaml"
)

// ServeCmd is the box's service: everything that runs while nobody is logged in.
type ServeCmd struct {
	Config string `help:"Configuration file (YAML). Without the flag the defaults are used." placeholder:"FILE" type:"path"`
}

// Help is shown by appliance serve --help.
func (ServeCmd) Help() string {
	return `Example:

  appliance serve --config /etc/appliance/appliance.yaml
  curl http://127.0.0.1:8080/api/v1/health

Under systemd it takes the socket named "panel", says when it is ready, and
feeds the watchdog for as long as every part of it turns.`
}

// serveConfig is the whole configuration file; each component declares its part.
type serveConfig struct {
	// Log is the least level that is logged: debug, info, warn or error.
	Log   string      `yaml:"log"`
	Panel panelConfig `yaml:"panel"`
	Box   box.Config  `yaml:"box"`
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

// Run serves until ctx is done.
func (c ServeCmd) Run(ctx context.Context, std *streams) error {
	cfg, err := loadServeConfig(c.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%w; leave out --config to serve with the defaults", err))
	} else if err != nil {
		return usage(err)
	}
	notifier, err := systemd.FromEnvironment()
	if err != nil {
		return cannot(err)
	}
	sockets := systemd.TakeSockets()
	listener, err := sockets.Listener("panel")
	if err == nil && listener == nil {
		listener, err = net.Listen("tcp", cfg.Panel.Listen)
	}
	if err != nil {
		return cannot(fmt.Errorf("panel: %w", err))
	}
	level, err := cfg.level()
	if err != nil {
		return usage(err)
	}
	log := systemd.Logger(std.err, level)
	if err := sockets.Close(); err != nil {
		log.Warn("unused sockets", "error", err)
	}
	return serve(ctx, notifier, listener, log)
}

// serve runs the panel on listener until ctx is done, and keeps systemd informed.
func serve(ctx context.Context, notifier *systemd.Notifier, listener net.Listener, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/health", healthHandler(notifier))
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	pulse, err := notifier.Subsystem("panel")
	if err != nil {
		return cannot(err)
	}
	go probePanel(ctx, listener.Addr(), notifier.Period(), pulse, log)
	go func() { _ = notifier.Run(ctx) }()

	at := "http://" + listener.Addr().String()
	if err := notifier.Ready("panel at " + at); err != nil {
		log.Warn("not announced", "error", err)
	}
	log.Info("serving", "panel", at, "version", version)
	select {
	case err := <-ended:
		return cannot(fmt.Errorf("panel: %w", err))
	case <-ctx.Done():
	}
	if err := notifier.Stopping("stopping"); err != nil {
		log.Warn("not announced", "error", err)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return cannot(fmt.Errorf("panel did not end in time: %w", err))
	}
	return nil
}

// probePanel asks the panel for its health, as a stranger would, and ticks for
// each answer: a panel that accepts and never answers is not alive.
func probePanel(ctx context.Context, addr net.Addr, period time.Duration, pulse *systemd.Pulse, log *slog.Logger) {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		log.Error("panel has no port to probe", "error", err)
		return
	}
	url := "http://" + net.JoinHostPort("127.0.0.1", port) + "/api/v1/health"
	client := &http.Client{Timeout: period, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := probe(ctx, client, url); err == nil {
			pulse.Tick()
		} else if ctx.Err() == nil {
			log.Warn("panel does not answer itself", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probe returns nil if url gives an answer, whatever it says.
func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// health is the answer of GET /api/v1/health.
type health struct {
	Status  string       `json:"status"` // "ok", or "failing" when a part does not turn
	Version string       `json:"version"`
	Parts   []healthPart `json:"parts"`
}

// healthPart is one subsystem.
type healthPart struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	AgoMS int64  `json:"ago_ms"` // since its last sign of life
}

// healthHandler answers 200 while every subsystem turns, and 503 with the same
// body when one does not. It needs no token and gives nothing away.
func healthHandler(notifier *systemd.Notifier) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := health{Status: "ok", Version: version, Parts: []healthPart{}}
		status := http.StatusOK
		for _, turn := range notifier.Turns() {
			answer.Parts = append(answer.Parts, healthPart{turn.Name, turn.OK, turn.Ago.Milliseconds()})
			if !turn.OK {
				answer.Status, status = "failing", http.StatusServiceUnavailable
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // the client went away
	})
}
