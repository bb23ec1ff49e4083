package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"eidetic/control/gadget"
	"eidetic/image/box"
	"eidetic/internal/box/service"
	"eidetic/systemd"
)

// BoxCmd are the commands that the box's own units run, as root.
type BoxCmd struct {
	Setup     BoxSetupCmd     `cmd:"" help:"Prepare disk, configuration and token, once at each boot."`
	Ports     BoxPortsCmd     `cmd:"" help:"Tell the uplink from the ports of devices."`
	Console   BoxConsoleCmd   `cmd:"" help:"Show the panel's address and token on the screen."`
	Bless     BoxBlessCmd     `cmd:"" help:"Mark a system that was updated as healthy once the service is."`
	Update    BoxUpdateCmd    `cmd:"" help:"Install the update that the service left, and restart."`
	Stick     BoxStickCmd     `cmd:"" help:"Install the update on a USB stick, if there is a newer one, and restart."`
	USB       BoxUSBCmd       `cmd:"" name:"usb" help:"Make the box a keyboard, a mouse and a touch screen at a USB device port."`
	ADB       BoxADBCmd       `cmd:"" name:"adb" help:"Be the adb server, through which Android devices are driven."`
	Install   BoxInstallCmd   `cmd:"" help:"Ask for a disk of this machine and write the running system to it."`
	Configure BoxConfigureCmd `cmd:"" help:"Put the configuration that the service left on the EFI partition, and restart."`
	Reset     BoxResetCmd     `cmd:"" help:"Forget all recordings, runs and settings, and restart."`
}

// BoxSetupCmd prepares the box.
type BoxSetupCmd struct{}

// Run prepares the box. A step that fails is logged, and the box goes on without it.
func (BoxSetupCmd) Run(ctx context.Context, std *streams) error {
	log := systemd.Logger(std.err, slog.LevelInfo)
	uid, gid := serviceAccount()
	box.Setup{
		Root:     "/",
		Run:      runProgram,
		Log:      log,
		CPUs:     runtime.NumCPU(),
		User:     uid,
		Group:    gid,
		Patience: 40 * time.Second,
		Check:    service.CheckBoxConfig,
	}.Do(ctx)
	return nil
}

// BoxPortsCmd watches the network ports.
type BoxPortsCmd struct {
	Config string `help:"Configuration file (YAML)." placeholder:"FILE" type:"path"`
}

// Run watches the ports until ctx is done.
func (c BoxPortsCmd) Run(ctx context.Context, std *streams) error {
	log := systemd.Logger(std.err, slog.LevelInfo)
	cfg, instead, problem := service.LoadBoxConfig(c.Config)
	if problem != nil {
		log.Error(instead, "error", problem)
	}
	return box.Ports{
		Root:   "/",
		Config: cfg.Box,
		Run:    runProgram,
		Log:    log,
		Links:  box.KernelLinks,
	}.Watch(ctx)
}

// BoxConsoleCmd keeps the banner on the box's screens.
type BoxConsoleCmd struct {
	TTY []string `default:"/dev/tty1,/dev/ttyS0" help:"Terminals to write to; those that are missing are left out."`
	URL string   `default:"http://127.0.0.1:8080/api/v1/health" help:"The address that tells the health."`
}

// Run shows the banner until ctx is done.
func (c BoxConsoleCmd) Run(ctx context.Context) error {
	console := box.Console{Root: "/", TTYs: c.TTY, URL: c.URL}
	if terminals, err := box.OpenTerminals(c.TTY); err == nil { // without one there is nobody to type
		console.Lines = terminals.Lines()
	}
	return console.Show(ctx)
}

// BoxBlessCmd waits for health and marks the running system as good.
type BoxBlessCmd struct {
	URL    string        `default:"http://127.0.0.1:8080/api/v1/health" help:"The address that tells the health."`
	Steady time.Duration `default:"5s" help:"How long it must stay healthy."`
	Within time.Duration `default:"90s" help:"How long it may take."`
}

// Run fails when the service does not become healthy, or when this version
// cannot read the configuration that the one before it could; its unit then restarts
// the box, and the boot loader counts.
func (c BoxBlessCmd) Run(ctx context.Context, std *streams) error {
	updater := newUpdater(std)
	if err := updater.CheckConfig(); err != nil {
		return failed(err)
	}
	client := &http.Client{Timeout: c.Steady}
	if err := box.AwaitHealth(ctx, client, c.URL, c.Steady, c.Within); err != nil {
		return failed(err)
	}
	return updater.Bless()
}

// BoxUpdateCmd installs the update that the service left.
type BoxUpdateCmd struct{}

// Run installs the update and restarts the box into it.
func (BoxUpdateCmd) Run(ctx context.Context, std *streams) error {
	updater := newUpdater(std)
	result, err := updater.Install()
	if err != nil {
		return failed(err)
	}
	updater.Log.Info("update installed, restarting", "version", result.Version)
	return restart(ctx)
}

// BoxStickCmd looks for an update on a USB stick.
type BoxStickCmd struct {
	Device string `arg:"" help:"The stick's partition, for example /dev/sda1."`
}

// Run installs the newest update that fits and restarts the box into it.
func (c BoxStickCmd) Run(ctx context.Context, std *streams) error {
	updater := newUpdater(std)
	result, err := updater.Stick(c.Device)
	if errors.Is(err, box.ErrNoUpdate) {
		updater.Log.Info("nothing is taken from the stick", "device", c.Device, "why", err)
		return nil
	}
	if err != nil {
		return failed(err)
	}
	updater.Log.Info("update installed from the stick, restarting", "version", result.Version)
	return restart(ctx)
}

// BoxUSBCmd makes the input devices of a USB device port.
type BoxUSBCmd struct {
	Port string `arg:"" help:"The port, as the kernel names it: fe980000.usb."`
}

// Run makes them; they stay until the box is switched off.
func (c BoxUSBCmd) Run() error {
	return cannot(gadget.Make(c.Port))
}

// BoxADBCmd is the adb server.
type BoxADBCmd struct{}

// Run becomes Debian's adb program.
func (BoxADBCmd) Run() error {
	program, err := exec.LookPath("adb")
	if err != nil {
		return cannot(err)
	}
	return cannot(syscall.Exec(program, []string{"adb", "-L", "tcp:localhost:5037", "server", "nodaemon"}, os.Environ()))
}

// BoxInstallCmd is the installer, which the boot loader's menu offers.
type BoxInstallCmd struct {
	TTY []string `default:"/dev/tty1,/dev/ttyS0" help:"Terminals to ask on; those that are missing are left out."`
}

// Run asks, writes the system to the disk that was chosen, and restarts.
func (c BoxInstallCmd) Run(ctx context.Context) error {
	terminals, err := box.OpenTerminals(c.TTY)
	if err != nil {
		return cannot(err)
	}
	if err := (box.Installer{Root: "/", Run: runProgram, Terminal: terminals}).Do(ctx); err != nil {
		return failed(err)
	}
	return restart(ctx)
}

// BoxConfigureCmd takes over a configuration from the panel.
type BoxConfigureCmd struct{}

// Run checks it again, keeps it on the EFI partition and restarts the box.
func (BoxConfigureCmd) Run(ctx context.Context, std *streams) error {
	if err := newUpdater(std).ReplaceConfig(); err != nil {
		return failed(err)
	}
	return restart(ctx)
}

// BoxResetCmd makes the next boot a factory reset.
type BoxResetCmd struct{}

// Run marks the reset on the EFI partition and restarts the box.
func (BoxResetCmd) Run(ctx context.Context, std *streams) error {
	if err := newUpdater(std).MarkReset(); err != nil {
		return failed(err)
	}
	return restart(ctx)
}

// restart restarts the box, in order.
func restart(ctx context.Context) error {
	out, err := runProgram(ctx, "systemctl", "--no-block", "reboot")
	if err != nil {
		return cannot(fmt.Errorf("restart: %w: %s", err, out))
	}
	return nil
}

func newUpdater(std *streams) box.Updater {
	return box.Updater{Root: "/", Log: systemd.Logger(std.err, slog.LevelInfo), Now: time.Now, Check: service.CheckBoxConfig}
}

// serviceAccount is the user and group of appliance.service, or root's where there is none.
func serviceAccount() (uid, gid int) {
	account, err := user.Lookup("appliance")
	if err != nil {
		return 0, 0
	}
	uid, uidErr := strconv.Atoi(account.Uid)
	gid, gidErr := strconv.Atoi(account.Gid)
	if uidErr != nil || gidErr != nil {
		return 0, 0
	}
	return uid, gid
}

// runProgram is the real box.Runner.
func runProgram(ctx context.Context, name string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, name, args...).CombinedOutput()
}
