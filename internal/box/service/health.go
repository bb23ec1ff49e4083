package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"eidetic/internal/base/tempdir"
	"eidetic/systemd"
)

// ownSocket opens a Unix socket on which the panel is served to this process alone. A
// stranger who takes all the connections of the panel's port cannot make the watchdog
// believe that the panel hangs. remove deletes the socket's folder.
func ownSocket() (l net.Listener, remove func(), err error) {
	// In memory, where there is such a folder: a full disk must not end the service.
	dir, empty, err := tempdir.Make(os.Getenv("RUNTIME_DIRECTORY"), "eidetic-probe-") // mode 0700
	if err != nil {
		return nil, nil, err
	}
	// By the descriptor of its folder: an address has room for 107 bytes, which the name of a folder may exceed.
	folder, err := os.Open(dir)
	if err == nil {
		l, err = net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/panel", folder.Fd()))
	}
	remove = func() {
		_ = folder.Close() // which may be nil
		empty()
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	return l, remove, nil
}

// probePanel asks the panel for its health at its own socket, and ticks for each answer: a
// panel that accepts connections and never answers is not alive.
func probePanel(ctx context.Context, socket string, period time.Duration, pulse *systemd.Pulse, log *slog.Logger) {
	client := &http.Client{Timeout: period, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := probe(ctx, client, "http://localhost/api/v1/health"); err == nil {
			pulse.Tick()
		} else if ctx.Err() == nil {
			log.Warn("the panel does not answer its own service", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probe returns nil if there is an answer, whatever its status.
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
