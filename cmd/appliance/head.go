package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"eidetic/internal/box/service"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/retention"
	"eidetic/internal/web/panel"
	"eidetic/systemd"
)

// HeadCmd is the head of a fleet.
type HeadCmd struct {
	Config    string   `placeholder:"FILE" type:"path" help:"Configuration file (YAML) with what a head has of a box's: log, mail, network.resolver, network.trust, repositories, retention, webhooks."`
	Data      string   `default:"out/head" type:"path" help:"Folder for runs, recordings, files of boxes and, without --database, the queue (${default})."`
	Database  string   `placeholder:"postgres://…" help:"PostgreSQL in place of a file in --data: then several heads share one queue and one history."`
	Files     string   `placeholder:"URL" help:"Where the files that boxes upload are kept, in place of a folder in --data: file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=https://HOST with the keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. Several heads share one."`
	Listen    string   `default:"127.0.0.1:8443" placeholder:"HOST:PORT" help:"Where panel and boxes reach the head (${default}: this machine alone)."`
	Address   string   `placeholder:"HOST:PORT" help:"The address by which boxes reach the head, for the links with which they join; without the flag that of --listen."`
	Host      []string `placeholder:"NAME" help:"Name by which the panel may be called besides addresses and localhost; once for each."`
	Webhook   []string `placeholder:"HOST" help:"Host in a private network that webhooks may call; once for each."`
	FilmsStay bool     `help:"Leave films on the boxes until somebody opens them; they are most of a run's bytes."`
	KeepDays  int      `placeholder:"N" help:"Delete films, pictures, recordings and logs of runs after so many days; numbers and reports stay, and whatever a pin, a series or a bisect needs."`
	KeepGB    float64  `name:"keep-gb" placeholder:"N" help:"Delete them, the oldest first, while all runs together take more."`
	KeepFree  float64  `name:"keep-free-gb" placeholder:"N" help:"Delete them, the oldest first, while less is free on the disk."`
	TokenFile string   `placeholder:"FILE" type:"path" help:"File with the panel's token. Without the flag one is made in the data folder, and shown on a terminal."`
}

// Help is shown by appliance head --help.
func (HeadCmd) Help() string {
	return `A head has one queue and one history for many boxes, which pull runs from it.

Example:

  appliance head --data out/head --listen 0.0.0.0:8443 --address 192.0.2.10:8443
  appliance boxes code --box https://192.0.2.10:8443        # prints a link
  appliance join LINK --name lab-1 --data out/box           # on the box
  appliance run --plan plan.yaml --box https://192.0.2.10:8443`
}

// Validate checks what kong cannot.
func (c HeadCmd) Validate() error {
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf("--listen %s: give HOST:PORT, such as 0.0.0.0:8443 for all of this machine's addresses", c.Listen)
	}
	if c.Database != "" && !strings.HasPrefix(c.Database, "postgres://") && !strings.HasPrefix(c.Database, "postgresql://") {
		return fmt.Errorf("--database: it begins with postgres://; without the flag the queue is a file in --data")
	}
	if field, err := c.retention().Check(); err != nil {
		return fmt.Errorf("--%s: %w", strings.ReplaceAll(field, "_", "-"), err)
	}
	return nil
}

func (c HeadCmd) retention() retention.Policy {
	return retention.Policy{KeepDays: c.KeepDays, KeepGB: c.KeepGB, KeepFreeGB: c.KeepFree}
}

// config reads the configuration; the flags count for more.
func (c HeadCmd) config() (service.Config, error) {
	cfg, err := service.LoadHeadConfig(c.Config)
	if err != nil {
		return cfg, err
	}
	cfg.Webhooks.Allow = append(cfg.Webhooks.Allow, c.Webhook...)
	cfg.Retention.KeepDays = cmp.Or(c.KeepDays, cfg.Retention.KeepDays)
	cfg.Retention.KeepGB = cmp.Or(c.KeepGB, cfg.Retention.KeepGB)
	cfg.Retention.KeepFreeGB = cmp.Or(c.KeepFree, cfg.Retention.KeepFreeGB)
	return cfg, nil
}

// Run serves until ctx is done.
func (c HeadCmd) Run(ctx context.Context, std *streams) error { return asTold(ctx, c.serve(ctx, std)) }

func (c HeadCmd) serve(ctx context.Context, std *streams) error {
	notifier, err := systemd.FromEnvironment()
	if err != nil {
		return cannot(err)
	}
	cfg, err := c.config()
	if err != nil {
		return usage(err)
	}
	level, err := cfg.Level()
	if err != nil {
		return usage(err)
	}
	log := slog.New(redact.Log(systemd.Logger(std.err, level).Handler()))
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return cannot(fmt.Errorf("data folder: %w", err))
	}
	held, err := service.HoldFolder(c.Data)
	if err != nil {
		return cannot(err)
	}
	defer held.Close()
	files, err := service.FilesStore(ctx, c.Files, log)
	if err != nil {
		return usage(fmt.Errorf("--files: %w", err))
	}
	listener, err := panel.Listen(ctx, c.Listen, "--listen")
	if err != nil {
		return cannot(err)
	}
	defer listener.Close()
	address := c.Address
	if address == "" {
		address = listener.Addr().String()
	}
	if err := service.CheckAddress(address); err != nil {
		return usage(fmt.Errorf("--address %w", err))
	}
	cert, err := service.HeadCertificate(c.Data, c.Host, log)
	if err != nil {
		return cannot(err)
	}
	token, file, err := service.Token(c.TokenFile, c.Data)
	if err != nil {
		return cannot(err)
	}
	if c.TokenFile == "" {
		tellToken(std.out, service.Address(listener.Addr(), cert), token, file)
	}
	first, second := pin.Text(pin.Of(cert.Leaf))
	fmt.Fprintf(std.out, "Its certificate has the SHA-256 %s:%s.\n", first, second)
	return service.NewHead(service.HeadOptions{
		Data: c.Data, Database: c.Database, Files: files, Address: address, Hosts: c.Host, Token: token, TLS: cert, Version: version,
		Commands: ownCommands(), Notifier: notifier, Log: log, FilmsStay: c.FilmsStay, Config: cfg,
	}).Serve(ctx, listener)
}
