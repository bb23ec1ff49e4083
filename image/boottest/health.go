package boottest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Health is the answer of the box's GET /api/v1/health.
type Health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// WaitHealthy asks from a port until the box at address (host:port) says that
// all of it works, and returns what it said.
func (p *Port) WaitHealthy(ctx context.Context, address string) (Health, error) {
	client := p.Client(2 * time.Second)
	var last error
	for {
		h, err := askHealth(ctx, client, "https://"+address+"/api/v1/health")
		if err == nil {
			return h, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return h, fmt.Errorf("the box is not healthy: %w (last: %w)", ctx.Err(), last)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func askHealth(ctx context.Context, client *http.Client, url string) (Health, error) {
	var h Health
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return h, err
	}
	response, err := client.Do(request)
	if err != nil {
		return h, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(body, &h); err != nil {
		return h, fmt.Errorf("%s: %w", response.Status, err)
	}
	if response.StatusCode != http.StatusOK || h.Status != "ok" {
		return h, fmt.Errorf("%s, status %q", response.Status, h.Status)
	}
	return h, nil
}
