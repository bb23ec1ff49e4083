package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"
	mangokong "github.com/alecthomas/mango-kong"
	"github.com/muesli/roff"
)

// CompletionCmd prints what makes a shell complete commands and flags.
type CompletionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish."`
}

// completions are what each shell reads: the program itself answers what goes on from a line, which the shell puts into
// COMP_LINE.
var completions = map[string]string{ // constant
	"bash": "complete -C appliance appliance\n",
	"zsh":  "autoload -U +X bashcompinit && bashcompinit\ncomplete -o nospace -C appliance appliance\n",
	"fish": `function __complete_appliance
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    appliance
end
complete -f -c appliance -a "(__complete_appliance)"
`,
}

// Help is shown by appliance completion --help.
func (CompletionCmd) Help() string {
	return `Prints what a shell reads to complete the commands and flags of appliance. The Debian package brings it for bash and fish.

Example:
  appliance completion bash >> ~/.bashrc
  appliance completion zsh >> ~/.zshrc
  appliance completion fish > ~/.config/fish/completions/appliance.fish`
}

// Run prints it.
func (c *CompletionCmd) Run(std *streams) error {
	text, ok := completions[c.Shell]
	if !ok {
		return usage(fmt.Errorf("%q: bash, zsh or fish", c.Shell))
	}
	_, err := fmt.Fprint(std.out, text)
	return err
}

// ManCmd prints the manual page.
type ManCmd struct{}

// Run prints it.
func (ManCmd) Run(app *kong.Kong, std *streams) error {
	_, err := fmt.Fprint(std.out, mangokong.NewManPage(1, app.Model).Build(manual{roff.NewDocument()}))
	return err
}

// manual is a page whose bytes depend on the commands alone.
type manual struct{ *roff.Document }

// Heading implements mango.Builder: the page of one version is the same whenever it is printed.
func (m manual) Heading(section uint, title, _ string, _ time.Time) {
	m.Document.Heading(section, title, "eidetic", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
}

// asKong is a command line in kong's words: what git and go understand, too, is help COMMAND and --version.
func asKong(args []string) ([]string, error) {
	switch {
	case len(args) == 0:
		return args, nil
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...), nil
	case args[0] == "help":
		for _, word := range args[1:] {
			switch {
			case word == "--help":
				return args[1:], nil
			case len(word) > 0 && word[0] == '-':
				return nil, errors.New("help: name a command, such as: appliance help archive import")
			}
		}
		return append(args[1:], "--help"), nil
	}
	return args, nil
}
