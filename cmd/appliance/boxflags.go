package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"eidetic/cmd/appliance/client"
	"eidetic/internal/box/service"
	"eidetic/internal/keep/pin"
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

// check is for a command's Validate.
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
