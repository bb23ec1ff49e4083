package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/service"
	"eidetic/internal/keep/pin"
	"eidetic/internal/plan"
)

// boxFlags say which box a command talks to, and by what they know each other.
type boxFlags struct {
	Box         string `env:"EIDETIC_BOX" placeholder:"URL" help:"Address of the box's panel; without it http://127.0.0.1:8080. appliance run without it, and without a token, uses no box but this machine itself."`
	TokenFile   string `type:"path" placeholder:"FILE" help:"File with a token of the panel. Without the flag the token is taken from the environment variable EIDETIC_TOKEN."`
	Fingerprint string `env:"EIDETIC_FINGERPRINT" placeholder:"SHA256" help:"SHA-256 of the box's certificate, as its screen shows it; another certificate is refused. Without it the box is known by the file of known boxes."`
	KnownBoxes  string `env:"EIDETIC_KNOWN_BOXES" type:"path" placeholder:"FILE" help:"Boxes that were seen before and their certificates; a new one is added, and one that has changed is refused (eidetic/known_boxes in the user's configuration folder)."`
}

// tokenVariable is where a token is taken from without a file: CI keeps secrets so.
const tokenVariable = "EIDETIC_TOKEN"

// defaultBox is the box when none is named.
const defaultBox = "http://127.0.0.1:8080"

// named tells whether the flags or the environment name a box, or a token for one.
func (f *boxFlags) named() bool {
	return f.Box != "" || f.TokenFile != "" || f.Fingerprint != "" || os.Getenv(tokenVariable) != ""
}

// Validate checks what kong cannot.
func (f *boxFlags) Validate() error { return f.check() }

// check is for the Validate of a command that has more to check.
func (f *boxFlags) check() error {
	f.Box = cmp.Or(f.Box, defaultBox)
	u, err := url.Parse(f.Box)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--box %q: it must be the address of a panel, such as https://box.local:8080 or http://127.0.0.1:8080", f.Box)
	}
	if f.Fingerprint != "" {
		if _, err := pin.Parse(f.Fingerprint); err != nil {
			return fmt.Errorf("--fingerprint: %w", err)
		}
		if u.Scheme != "https" {
			return fmt.Errorf("--fingerprint goes with an address that begins with https, and --box is %s", f.Box)
		}
	}
	return nil
}

// config is the client's configuration; news of a box that is new goes to w.
func (f *boxFlags) config(w io.Writer) (client.Config, error) {
	token := client.NewSecret(strings.TrimSpace(os.Getenv(tokenVariable)))
	if f.TokenFile != "" {
		var err error
		if token, err = service.ReadToken(f.TokenFile); err != nil {
			return client.Config{}, fmt.Errorf("--token-file: %w", err)
		}
	}
	known := f.KnownBoxes
	if known == "" {
		// Without a home, as in some builds, an unknown box is refused.
		if dir, err := os.UserConfigDir(); err == nil {
			known = filepath.Join(dir, "eidetic", "known_boxes")
		}
	}
	return client.Config{Base: f.Box, Token: token, Trust: client.Trust{
		Fingerprint: f.Fingerprint, KnownBoxes: known, Notice: func(text string) { fmt.Fprintln(w, text) },
	}}, nil
}

// client returns a client that asks a box that does not answer for so long.
func (f *boxFlags) client(std *streams, patience time.Duration) (*client.Client, error) {
	config, err := f.config(std.err)
	config.Patience = patience
	return client.New(config), usage(err)
}

// onBox asks a box, or a head. An error that has no exit status yet gets that of the client's error.
func (f *boxFlags) onBox(std *streams, question func(*client.Client) error) error {
	box, err := f.client(std, 5*time.Second)
	if err != nil {
		return err
	}
	defer box.Close()
	return boxError(question(box))
}

// show asks a box, and shows the answer as JSON, or by what prints it for a person.
func show[T any](f *boxFlags, std *streams, asJSON bool, ask func(*client.Client) (T, error), print func(T) error) error {
	return f.onBox(std, func(box *client.Client) error {
		answer, err := ask(box)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(std.out, answer)
		}
		return print(answer)
	})
}

// keepPlan brings a plan of a file, and what is named in it, to a box or a head, which keeps it.
func (f *boxFlags) keepPlan(ctx context.Context, std *streams, file, to string, keep func(*client.Client, *plan.Request) error) error {
	q, err := plan.ReadFile(file)
	if err != nil {
		return usage(fmt.Errorf("--plan: %w", err))
	}
	if err := attachFiles(&q); err != nil {
		return usage(q.Locate(err))
	}
	return f.onBox(std, func(box *client.Client) error {
		if err := box.UploadArchives(ctx, &q, uploads(to, std.note)); err != nil {
			return err
		}
		return located(keep(box, &q), q)
	})
}
