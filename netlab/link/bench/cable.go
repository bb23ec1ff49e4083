package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"eidetic/netlab/link/measure"
	"eidetic/netlab/netspace"
)

const httpPort = "80"

// cable is a measure.Cable that programs of Debian measure.
type cable struct{ *measure.Cable }

// ping sends n echoes at an interval with ping and returns the round trips that
// tcpdump saw on the device's cable.
func (c *cable) ping(n int, interval time.Duration) (rtts []time.Duration, lost int, err error) {
	path, err := program("ping", "iputils-ping")
	if err != nil {
		return nil, 0, err
	}
	packets, err := listenWhile(c.Device, "eth0", func() error {
		out, err := c.Device.Output(path, "-q", "-n", "-c", strconv.Itoa(n), "-i", fmt.Sprint(interval.Seconds()), "-W",
			"5", measure.GatewayAddr)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) { // its status reports losses, which tcpdump shows
			return fmt.Errorf("ping: %w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	rtts, lost = roundTrips(packets)
	if len(rtts) == 0 {
		return nil, lost, errors.New("measure round trips: no echo was answered")
	}
	return rtts, lost, nil
}

// listenWhile returns what passed an interface while f ran.
func listenWhile(ns *netspace.Namespace, name string, f func() error) ([]seenPacket, error) {
	w, err := listen(ns, name)
	if err != nil {
		return nil, err
	}
	err = f()
	packets, stopErr := w.stop()
	return packets, errors.Join(err, stopErr)
}

// Sizes of the files on the box's web server; a file's name is its size.
const (
	small = 100
	page  = 100_000
)

// serve starts nginx on the box, with the files /100 and /100000.
func (c *cable) serve(ctx context.Context) (stop func(), err error) {
	nginx, err := program("nginx", "nginx-light")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "link-nginx-")
	if err != nil {
		return nil, fmt.Errorf("serve files: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // only a temporary folder
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr; user root;
events {}
http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2;
  fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
  server { listen %[2]s:%[3]s; root %[1]s; } }
`, dir, measure.GatewayAddr, httpPort)
	files := map[string][]byte{
		"nginx.conf":        []byte(config),
		strconv.Itoa(small): make([]byte, small),
		strconv.Itoa(page):  make([]byte, page),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			remove()
			return nil, fmt.Errorf("serve files: %w", err)
		}
	}
	end, err := service(ctx, c.Box, func() error { return c.Box.Do(func() error { return knock(httpPort) }) }, nginx,
		"-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	if err != nil {
		remove()
		return nil, err
	}
	return func() { end(); remove() }, nil
}

// knock connects to a port from the box itself.
func knock(port string) error {
	conn, err := net.Dial("tcp", net.JoinHostPort(measure.GatewayAddr, port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// fetch fetches the page several times with curl, each time over a new connection,
// and returns the connections with what both ends of the cable saw. One process makes
// all requests, and its first one does not count, because a program that has just
// started is still read from the disk.
func (c *cable) fetch(ctx context.Context, times int, port string) (list []transfer, device, box map[string]*sight, err error) {
	var atDevice []seenPacket
	atBox, err := listenWhile(c.Box, "lab0", func() (err error) {
		url := fmt.Sprintf("http://%s/%d?[0-%d]", net.JoinHostPort(measure.GatewayAddr, port), page, times)
		atDevice, err = c.curl(ctx, "-H", "Connection: close", url)
		return err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	list = transfers(atDevice, port, false)
	if len(list) != times+1 {
		return nil, nil, nil, fmt.Errorf("fetch %d times: the cable showed %d connections", times+1, len(list))
	}
	return list[1:], sights(atDevice, port), sights(atBox, port), nil
}

// ask fetches the small file several times with curl over one connection.
func (c *cable) ask(ctx context.Context, times int, port string) ([]time.Duration, error) {
	packets, err := c.curl(ctx, fmt.Sprintf("http://%s/%d?[1-%d]", net.JoinHostPort(measure.GatewayAddr, port), small, times))
	if err != nil {
		return nil, err
	}
	list := transfers(packets, port, false)
	if len(list) != 1 || len(list[0].rounds) != times {
		return nil, fmt.Errorf("ask %d times: the cable showed %d connections", times, len(list))
	}
	return list[0].rounds, nil
}

// curl runs curl on the device and returns what tcpdump saw on its cable.
func (c *cable) curl(ctx context.Context, args ...string) ([]seenPacket, error) {
	curl, err := program("curl", "curl")
	if err != nil {
		return nil, err
	}
	return listenWhile(c.Device, "eth0", func() error {
		cmd := exec.CommandContext(ctx, curl, append([]string{"-sS", "--fail", "-o", "/dev/null"}, args...)...)
		var said strings.Builder
		cmd.Stderr = &said
		if err := c.Device.Do(cmd.Start); err != nil {
			return fmt.Errorf("curl: %w", err)
		}
		prefer(cmd.Process.Pid)
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("curl: %w: %s", err, said.String())
		}
		return nil
	})
}
