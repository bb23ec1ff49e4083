package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"eidetic/netlab/link"
	"eidetic/netlab/link/measure"
)

// tbf shapes both ends of a bare cable as tc(8) advises, with a bucket of one full
// frame, so that there are no bursts, and a queue of 200 ms.
func (c *cable) tbf(rate link.Rate) error {
	tc, err := program("tc", "iproute2")
	if err != nil {
		return err
	}
	args := func(name string) []string {
		// tbf counts Ethernet headers too, so its rate is larger by those of full packets.
		const ethernet = 14
		counted := rate * (link.DefaultMTU + ethernet) / link.DefaultMTU
		return []string{"qdisc", "replace", "dev", name, "root", "tbf", "rate", fmt.Sprintf("%dbit", counted), "burst",
			"1540", "latency", "200ms"}
	}
	if out, err := c.Box.Output(tc, args("lab0")...); err != nil {
		return fmt.Errorf("tc: %w: %s", err, out)
	}
	if out, err := c.Device.Output(tc, args("eth0")...); err != nil {
		return fmt.Errorf("tc: %w: %s", err, out)
	}
	return nil
}

// toxiproxyModule is built outside this module, so that go.mod does not name it.
const toxiproxyModule = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"

// buildToxiproxy installs the server into a folder.
func buildToxiproxy(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "install", toxiproxyModule)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build toxiproxy (leave it out with -peers=false): %w: %s", err, out)
	}
	return filepath.Join(dir, "server"), nil
}

const toxiPort = "8000"

// toxi starts toxiproxy in front of the box's web server, with half of the
// round trip in each direction.
func (c *cable) toxi(ctx context.Context, server string, rtt time.Duration) (stop func(), err error) {
	curl, err := program("curl", "curl")
	if err != nil {
		return nil, err
	}
	api := func(path, body string) error {
		if out, err := c.Box.Output(curl, "-sS", "--fail-with-body", "-d", body, "http://127.0.0.1:8474"+path); err != nil {
			return fmt.Errorf("toxiproxy %s: %w: %s", path, err, out)
		}
		return nil
	}
	create := fmt.Sprintf(`{"name":"web","listen":"%[1]s:%[2]s","upstream":"%[1]s:%[3]s"}`, measure.GatewayAddr, toxiPort, httpPort)
	if stop, err = service(ctx, c.Box, func() error { return api("/proxies", create) }, server); err != nil {
		return nil, err
	}
	for _, stream := range []string{"upstream", "downstream"} {
		toxic := fmt.Sprintf(`{"type":"latency","stream":%q,"attributes":{"latency":%d}}`, stream, rtt.Milliseconds()/2)
		if err := api("/proxies/web/toxics", toxic); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}
