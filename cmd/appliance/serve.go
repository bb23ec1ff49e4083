package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"runtime"
	"syscall"

	"eidetic/image/box"
	"eidetic/internal/base/priority"
	"eidetic/internal/box/service"
	"eidetic/internal/keep/pin"
	"eidetic/internal/keep/redact"
	"eidetic/internal/keep/support"
	"eidetic/internal/lab"
	"eidetic/internal/tell/terminal"
	"eidetic/internal/web/panel"
	"eidetic/systemd"
)

// ServeCmd is the box's service: everything that runs while nobody is logged in.
type ServeCmd struct {
	Config    string `help:"Configuration file (YAML). Without the flag the defaults are used." placeholder:"FILE" type:"path"`
	Listen    string `placeholder:"HOST:PORT" help:"Where the panel listens, in place of panel.listen in the configuration (127.0.0.1:8080). Where systemd passes a socket, that one is taken."`
	Data      string `default:"out/box" type:"path" help:"Folder for runs, recordings, the queue and what the box must remember (${default})."`
	Private   bool   `name:"allow-private" help:"Let pages that are recorded reach this machine and private networks, as network.allow_private in the configuration does. Without it a panel that only this machine reaches lets the scope admin name pages there."`
	TokenFile string `placeholder:"FILE" type:"path" help:"File with the panel's token. Without the flag one is made in the data folder, and shown on a terminal."`
}

// Help is shown by appliance serve --help.
func (ServeCmd) Help() string {
	return `Example:

  appliance serve --data out/box
  appliance serve --listen 0.0.0.0:8080     # others can reach it, by https:// and with a token
  curl http://127.0.0.1:8080/api/v1/health

Under systemd it takes the socket named "panel", says when it is ready, and
feeds the watchdog while all its parts respond.`
}

// Validate checks what kong cannot.
func (c ServeCmd) Validate() error {
	if c.Listen == "" {
		return nil
	}
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fmt.Errorf(
			"--listen %s: give HOST:PORT, such as 127.0.0.1:8081, or 0.0.0.0:8080 for all of this machine's addresses",
			c.Listen,
		)
	}
	return nil
}

// Run serves until ctx is done.
func (c ServeCmd) Run(ctx context.Context, std *streams) error { return asTold(ctx, c.serve(ctx, std)) }

// asTold is the error of a service: none where it was told to stop while it started.
func asTold(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (c ServeCmd) serve(ctx context.Context, std *streams) error {
	cfg, instead, problem := c.config("/")
	if problem != nil && instead == "" {
		return usage(problem)
	}
	cfg.Network.AllowPrivate = cfg.Network.AllowPrivate || c.Private
	level, err := cfg.Level()
	if err != nil {
		return usage(err)
	}
	notifier, err := systemd.FromEnvironment()
	if err != nil {
		return cannot(err)
	}
	sockets := systemd.TakeSockets()
	listener, err := sockets.Listener("panel")
	if err == nil && listener == nil {
		listener, err = panel.Listen(ctx, cmp.Or(c.Listen, cfg.Panel.Listen), "--listen")
	}
	if err != nil {
		return cannot(fmt.Errorf("panel: %w", err))
	}
	defer listener.Close()
	recent := &support.Tail{}
	kept := slog.NewTextHandler(recent, &slog.HandlerOptions{Level: level})
	log := slog.New(redact.Log(slog.NewMultiHandler(systemd.Logger(std.err, level).Handler(), kept)))
	if problem != nil {
		log.Error(instead, "error", problem)
	}
	if err := sockets.Close(); err != nil {
		log.Warn("unused sockets of systemd cannot be closed", "error", err)
	}
	data, err := service.DataFolder(c.Data, log)
	if err != nil {
		return cannot(err)
	}
	held, err := service.HoldFolder(data)
	if err != nil {
		return cannot(err)
	}
	defer held.Close()
	if err := service.FinishRestore(data, log); err != nil {
		return cannot(err)
	}
	token, file, err := service.Token(c.TokenFile, data)
	if err != nil {
		return cannot(err)
	}
	cert := service.Certificate(cfg, data, log)
	if c.TokenFile == "" {
		tellToken(std.out, service.Address(listener.Addr(), cert), token, file)
	}
	if cert != nil && !panel.Loopback(listener.Addr()) {
		first, second := pin.Text(pin.Of(cert.Leaf))
		fmt.Fprintf(std.out, "Its certificate has the SHA-256 %s:%s.\n", first, second)
	}
	roots, err := cfg.Network.Roots()
	if err != nil {
		return usage(err)
	}
	o := service.Options{
		Config: cfg, Data: data, Token: token, TLS: cert, Roots: roots, Version: version, Software: versionLine(),
		Commands: ownCommands(), Notifier: notifier, Log: log, ConfigFile: c.Config, Recent: recent, Doctor: examine,
	}
	if instead != "" {
		o.Warnings = []string{instead}
	}
	// A run on the virtual device has processes of its own. One at a port is in part this process's work.
	if len(cfg.Devices) == 0 {
		if o.Commands.Ahead, err = priority.Behind(); err != nil {
			log.Info("runs do not go ahead of the panel", "reason", err)
		}
	}
	err = service.New(o).Serve(ctx, listener)
	if !errors.Is(err, service.ErrRestart) || os.Getenv("NOTIFY_SOCKET") != "" { // systemd starts it again
		if errors.Is(err, service.ErrRestart) {
			err = nil
		}
		return err
	}
	_ = listener.Close() // the next one takes the same address
	if o.Commands.Ahead != nil {
		runtime.LockOSThread()
		o.Commands.Ahead() // and the same priority
	}
	return cannot(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

// config reads the configuration. On a box a mistake in it is logged, with what is
// used instead; elsewhere a person is there to read an error.
func (c ServeCmd) config(root string) (cfg service.Config, instead string, problem error) {
	if box.Is(root) {
		return service.LoadBoxConfig(c.Config)
	}
	cfg, err := service.LoadConfig(c.Config)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, service.ErrTrust) {
		err = fmt.Errorf("%w; leave out --config to serve with the defaults", err)
	}
	return cfg, "", err
}

// tellToken says where the panel is, and shows its token to a person. What else standard output is, a journal or a
// container's log, more people read than may have the token.
func tellToken(out io.Writer, address string, token lab.Secret, file string) {
	if terminal.Is(out) {
		fmt.Fprintf(out, "The panel is at %s/ and asks for the token %s (kept in %s).\n", address, token.Reveal(), file)
		return
	}
	fmt.Fprintf(out, "The panel is at %s/ and asks for the token that is kept in %s.\n", address, file)
}
