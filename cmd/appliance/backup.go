package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/service"
	"eidetic/internal/keep/backup"
	"eidetic/internal/tell/terminal"
)

// BackupCmd writes all that a box keeps into one file.
type BackupCmd struct {
	Out     string `type:"path" placeholder:"FILE" help:"File to write. Without it the backup goes to the standard output."`
	Secrets bool   `help:"Also the box's token, keys, Wi-Fi network, webhooks, and the passwords of its configuration: for a box that takes this one's place."`
	boxFlags
}

// Help is shown by appliance backup --help.
func (BackupCmd) Help() string {
	return `Needs a token of the scope admin. Runs in progress are left out, and are not disturbed. The file is a tar file that ends with
checksums; the command checks all of it as it arrives, and fails if it is incomplete.

Example:
  appliance backup --box https://box.local:8080 --out box.tar
  appliance restore --check box.tar`
}

// Run implements the command.
func (c *BackupCmd) Run(ctx context.Context, std *streams) error {
	return c.onBox(std, func(box *client.Client) error {
		get := func(ctx context.Context, w io.Writer) error { return box.Backup(ctx, c.Secrets, w) }
		if c.Out == "" && terminal.Is(std.out) {
			return usage(errors.New("a backup is a binary file: give --out FILE, or redirect the output into a file"))
		} else if c.Out == "" {
			return c.fetch(ctx, std, std.out, get)
		}
		return writePrivate(c.Out, func(w io.Writer) error { return c.fetch(ctx, std, w, get) })
	})
}

// fetch copies a backup and checks it meanwhile.
func (c *BackupCmd) fetch(ctx context.Context, std *streams, out io.Writer, get func(context.Context, io.Writer) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type verified struct {
		backup.Manifest
		error
	}
	read, write := io.Pipe()
	checked := make(chan verified, 1)
	go func() {
		m, err := backup.Verify(read)
		if err == nil {
			_, err = io.Copy(io.Discard, read) // the end of the tar file, which has no content
		}
		read.CloseWithError(err)
		checked <- verified{m, err}
	}()
	err := get(ctx, io.MultiWriter(out, write))
	_ = write.CloseWithError(err) // never returns an error
	result := <-checked
	switch {
	case isMissing(err):
		return cannot(errors.New("only a box can be asked for a backup; a head is backed up with its data folder and its database, while it is stopped"))
	case err != nil && !errors.Is(err, backup.ErrHostile):
		return err
	case result.error != nil:
		return cannot(fmt.Errorf("the backup is incomplete: %w", result.error))
	}
	printContent(std.err, result.Manifest)
	return nil
}

func printContent(w io.Writer, m backup.Manifest) {
	secrets := "without secrets"
	if m.Secrets {
		secrets = "with secrets: keep it as you keep the box's token"
	}
	fmt.Fprintf(w, "Backup of %s by %s: %d runs, %d uploaded recordings, %d MB, %s.\n", m.Made.Local().Format("2006-01-02 15:04"),
		terminal.Visible(m.Software), m.Runs, m.Recordings, m.Bytes/1_000_000, secrets)
	for _, what := range m.LeftOut {
		fmt.Fprintf(w, "Not in it: %s\n", terminal.Visible(what))
	}
}

// RestoreCmd puts a backup in the place of what a data folder holds.
type RestoreCmd struct {
	File    string `arg:"" type:"existingfile" help:"Backup to restore."`
	Data    string `type:"path" placeholder:"DIR" help:"Data folder of a service that does not run; it is made if there is none."`
	Check   bool   `help:"Only read the file and check it."`
	Replace bool   `help:"Replace what the data folder holds now, which is gone then."`
}

// Help is shown by appliance restore --help.
func (RestoreCmd) Help() string {
	return `Everything is checked before anything is replaced. A restore that is cut off leaves the old state, or is finished by the next
start of appliance serve. What belongs to the machine stays where the backup has no secrets: token, keys, Wi-Fi network. The
configuration is appliance.yaml in the data folder then. A box is restored over REST: POST /api/v1/restore.

Example:
  appliance restore --check box.tar
  appliance restore box.tar --data out/box
  appliance serve --data out/box --config out/box/appliance.yaml`
}

// Validate checks what kong cannot.
func (c *RestoreCmd) Validate() error {
	if c.Check == (c.Data != "") {
		return errors.New("give --data DIR to restore the backup there, or --check to check it")
	}
	return nil
}

// Run implements the command.
func (c *RestoreCmd) Run(ctx context.Context, std *streams) error {
	f, err := os.Open(c.File)
	if err != nil {
		return usage(err)
	}
	defer f.Close()
	if c.Check {
		m, err := backup.Verify(f)
		if err != nil {
			return failed(fmt.Errorf("%s: %w", c.File, err))
		}
		printContent(std.out, m)
		return nil
	}
	_, missing := os.Lstat(c.Data)
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return cannot(err)
	}
	held, err := service.HoldFolder(c.Data)
	if err != nil {
		return cannot(err)
	}
	defer held.Close()
	if _, err := backup.Apply(c.Data); err != nil { // an earlier one that was cut off
		return cannot(err)
	}
	old, err := os.ReadDir(c.Data)
	if err != nil {
		return cannot(err)
	}
	if len(old) > 0 && !c.Replace {
		return usage(fmt.Errorf("--data %s: it is not empty; --replace replaces its runs, recordings, workflows and tokens", c.Data))
	}
	m, err := backup.Stage(f, c.Data, func(dir string, _ backup.Manifest) error { return service.CheckBackup(ctx, dir) })
	if err == nil {
		_, err = backup.Apply(c.Data)
	}
	switch {
	case errors.Is(err, backup.ErrHostile):
		if missing != nil {
			_ = os.Remove(c.Data) // it was made for this, and is empty
		}
		return failed(fmt.Errorf("%s: %w; nothing was changed", c.File, err))
	case err != nil:
		return cannot(err)
	}
	printContent(std.out, m)
	return nil
}
