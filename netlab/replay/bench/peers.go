package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"eidetic/netlab/ca"
)

// peer is a server that ours is compared with.
type peer struct {
	name  string
	start func(ctx context.Context, o options) (*server, error)
}

// absence is a peer that is not measured, with the reason.
type absence struct {
	name string
	why  error
}

type absences []absence

func (a absences) has(name string) bool {
	return slices.ContainsFunc(a, func(m absence) bool { return m.name == name })
}

// peers returns the servers in the order of the table, and those that this machine lacks as absent.
func peers(o options) (out []peer, absent absences) {
	for _, p := range []peer{
		{"appliance", startAppliance}, {"go", startGo}, {"nginx", startNginx}, {"mitmproxy", startMitmproxy}, {"wpr", startWPR},
	} {
		switch {
		case p.name != "appliance" && !o.wants(p.name): // ours is always measured, as the others are compared with it
		case p.name == "wpr" && o.wpr == "":
			absent = append(absent, absence{"wpr", errors.New("no package has Web Page Replay, and -wpr names no folder with it")})
		default:
			out = append(out, p)
		}
	}
	return out, absent
}

func self(ctx context.Context, o options, name string, args ...string) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{exe, "-as", name}
	if o.profile != "" && name == "appliance" {
		profile, err := filepath.Abs(o.profile)
		if err != nil {
			return nil, err
		}
		argv = append(argv, "-cpuprofile", profile)
	}
	return start(ctx, name, "", o.dir, append(argv, args...)...)
}

func startAppliance(ctx context.Context, o options) (*server, error) {
	return self(ctx, o, "appliance", filepath.Join(o.dir, "small.wacz"))
}

func startGo(ctx context.Context, o options) (*server, error) { return self(ctx, o, "go") }

// startNginx serves the files from RAM by sendfile's fastest settings.
func startNginx(ctx context.Context, o options) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(o.dir, "nginx")
	if err := writeFiles(root); err != nil {
		return nil, err
	}
	if err := writeLeaf(filepath.Join(o.dir, "leaf.pem")); err != nil {
		return nil, err
	}
	conf := filepath.Join(o.dir, "nginx.conf")
	text := fmt.Sprintf(`
daemon off;
user root;
pid %[1]s/nginx.pid;
error_log stderr crit;
worker_processes auto;
events { worker_connections 1024; }
http {
	access_log off;
	default_type text/css;
	open_file_cache max=4096;
	keepalive_requests 100000000;
	http2_max_requests 100000000;
	client_body_temp_path %[1]s/nginx-body;
	proxy_temp_path %[1]s/nginx-proxy;
	fastcgi_temp_path %[1]s/nginx-fastcgi;
	uwsgi_temp_path %[1]s/nginx-uwsgi;
	scgi_temp_path %[1]s/nginx-scgi;
	server {
		listen %[2]s ssl http2;
		ssl_certificate %[1]s/leaf.pem;
		ssl_certificate_key %[1]s/leaf.pem;
		ssl_protocols TLSv1.3;
		root %[1]s/nginx;
	}
}
`, o.dir, addr)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, "nginx", addr, o.dir, "nginx", "-e", "stderr", "-c", conf)
}

// writeLeaf writes a leaf with its key, like those that we give out.
func writeLeaf(file string) error {
	authority, err := ca.New(time.Now)
	if err != nil {
		return err
	}
	leaf, err := authority.Leaf(host)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	for _, der := range leaf.Certificate {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return os.WriteFile(file, text, 0o600)
}

// startMitmproxy records the URLs through mitmproxy itself and starts it to
// replay them.
func startMitmproxy(ctx context.Context, o options) (*server, error) {
	origin, err := startGo(ctx, o)
	if err != nil {
		return nil, err
	}
	defer origin.stop()
	flows := filepath.Join(o.dir, "flows")
	common := []string{
		"mitmdump", "-q", "--set", "confdir=" + filepath.Join(o.dir, "mitmproxy"), "--set", "keep_host_header=true",
		"--set", "ssl_insecure=true", "--mode", "reverse:https://" + origin.addr, "--listen-host", "127.0.0.1",
	}
	launch := func(args ...string) (*server, error) {
		addr, err := freePort()
		if err != nil {
			return nil, err
		}
		argv := append(append([]string{}, common...), "--listen-port", addr[len("127.0.0.1:"):])
		return start(ctx, "mitmproxy", addr, o.dir, append(argv, args...)...)
	}
	recorder, err := launch("-w", flows)
	if err != nil {
		return nil, err
	}
	_, err = h2load(ctx, recorder, o, "-n", fmt.Sprint(asked), "-c", "1", "-m", "8")
	recorder.stop() // writes what it has
	if err != nil {
		return nil, fmt.Errorf("record with mitmproxy: %w", err)
	}
	return launch(
		"--set",
		"connection_strategy=lazy",
		"--set",
		"upstream_cert=false",
		"--server-replay-nopop",
		"--set",
		"server_replay_kill_extra=true",
		"-S",
		flows,
	)
}

func startWPR(ctx context.Context, o options) (*server, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.dir, "archive.wprgo")
	if err := writeWPR(file); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.wpr)
	if err != nil {
		return nil, err
	}
	return start(
		ctx,
		"wpr",
		addr,
		dir,
		filepath.Join(dir, "wpr"),
		"replay",
		"--host",
		"127.0.0.1",
		"--http_port",
		"-1",
		"--https_port",
		addr[len("127.0.0.1:"):],
		"--https_cert_file",
		"ecdsa_cert.pem",
		"--https_key_file",
		"ecdsa_key.pem",
		"--quiet_mode",
		"--no_archive_certificates",
		file,
	)
}
