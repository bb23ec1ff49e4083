package service

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"eidetic/systemd"
)

// probePanel asks the panel for its health, as a client without a token would, and
// ticks for each answer: a panel that accepts connections and never answers is not alive.
func probePanel(ctx context.Context, addr net.Addr, period time.Duration, pulse *systemd.Pulse, log *slog.Logger) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		log.Error("the panel has no port to probe", "error", err)
		return
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port) + "/api/v1/health"
	client := &http.Client{Timeout: period, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		if err := probe(ctx, client, url); err == nil {
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
