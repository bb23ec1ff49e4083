package main

import (
	"context"

	"github.com/alecthomas/kong"
)

// TokenCmd manages the tokens of a box.
type TokenCmd struct {
	Make   TokenMakeCmd   `cmd:"" help:"Make a token and print it, once." example:"appliance token make ci --scope run --box https://box.local:8080"`
	Ls     listCmd        `cmd:"" help:"List the tokens, with their last use." example:"appliance token ls --box https://box.local:8080"`
	Revoke TokenRevokeCmd `cmd:"" help:"Revoke a token, and the sessions that were opened with it." example:"appliance token revoke ci --box https://box.local:8080"`
}

// Help is shown by appliance token --help.
func (TokenCmd) Help() string {
	return `A box has a token of its own, which may do everything. Give each script a token that may do what the script does: read looks
at runs, run also starts and cancels them and uploads recordings, admin may do everything. All commands need a token of the scope
admin, from --token-file or the environment variable EIDETIC_TOKEN.

Example:
  appliance token make nightly --scope run --box https://box.local:8080 > nightly.token
  appliance token ls
  appliance token revoke nightly`
}

// TokenMakeCmd makes a token.
type TokenMakeCmd struct {
	Name  string `arg:"" help:"What to call it."`
	Scope string `default:"run" enum:"read,run,admin" help:"What it may do: read, run or admin (${default})."`
	JSON  bool   `name:"json" help:"Print the answer of the box as JSON."`
	boxFlags
}

// Run implements the command.
func (c *TokenMakeCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, nil, things{"name": c.Name, "scope": c.Scope}, c.JSON)
}

// TokenRevokeCmd revokes a token.
type TokenRevokeCmd struct {
	Token string `arg:"" help:"Name or ID of the token."`
	boxFlags
}

// Run implements the command.
func (c *TokenRevokeCmd) Run(ctx context.Context, std *streams, k *kong.Context) error {
	return c.carryOut(ctx, std, k, things{"name": c.Token}, nil, false)
}
