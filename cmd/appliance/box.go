package main

import (
	"context"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"

	"eidetic/image/box"
	"eidetic/systemd"
)

// BoxCmd are the commands that the box's own units run, as root.
type BoxCmd struct {
	Setup BoxSetupCmd `cmd:"" help:"Prepare disk, configuration and token, once at each boot."`
}

// BoxSetupCmd prepares the box.
type BoxSetupCmd struct{}

// Run prepares the box; what fails is logged, and the box goes on without it.
func (BoxSetupCmd) Run(ctx context.Context, std *streams) error {
	level, err := defaultServeConfig().level()
	if err != nil {
		return err
	}
	log := systemd.Logger(std.err, level)
	uid, gid := serviceAccount()
	box.Setup{
		Root:  "/",
		Run:   runProgram,
		Log:   log,
		CPUs:  runtime.NumCPU(),
		User:  uid,
		Group: gid,
		Check: checkBoxConfig,
	}.Do(ctx)
	return nil
}

// checkBoxConfig is the check of the whole file, by all its components.
func checkBoxConfig(name string, text []byte) (box.Config, error) {
	cfg := defaultServeConfig()
	err := parseServeConfig(name, text, &cfg)
	return cfg.Box, err
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
