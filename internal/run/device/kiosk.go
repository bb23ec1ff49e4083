package device

import (
	"bytes"
	"strings"
	"text/template"

	"eidetic/internal/base/programs"
)

// KioskScript is a shell script that makes a Linux computer with Chromium a device of the
// box: a browser that trusts the box fills the screen and opens the start page. Whenever the
// browser is closed, which the box does by a key, the script starts it again with an empty
// profile. The script runs until it is interrupted, and then removes its files.
//
// The script's arguments are the screen's width and height. box is the box's URL without a
// final slash, start the page to open.
func KioskScript(box, start string) []byte {
	var flags []string
	for _, f := range append(append(quietFlags(), quicFlag(nil)), windowFlags("$width", "$height", "$((width + 1))", "$((height + 1))")...) {
		quoted := `"` + f + `"` // the only special characters in flags are the intended shell variables
		flags = append(flags, quoted)
	}
	var b bytes.Buffer
	// The template and its values are constant, so Execute does not fail.
	_ = template.Must(template.New("kiosk").Parse(kioskText)).Execute(&b, map[string]string{
		"Box": box, "Start": start, "Flags": strings.Join(flags, " \\\n\t\t"),
		"Find":    "command -v " + strings.Join(programs.Chromium().Files, " || command -v "),
		"Package": programs.Chromium().Package,
	})
	return b.Bytes()
}

const kioskText = `#!/bin/sh
# Makes this computer's Chromium what the box measures. As a user of the desktop:
#
#   curl -fsS {{.Box}}/kiosk.sh | sh -s 1920 1080
#
# It needs chromium, certutil (Debian: libnss3-tools) and curl; the screen is to
# be shared by a VNC server. Ctrl-C ends it.
set -eu
width=${1:?the width of the screen in pixels} height=${2:?the height of the screen in pixels}
browser=$({{.Find}}) || {
	echo "there is no Chromium: apt-get install {{.Package}}" >&2
	exit 1
}
home=$(mktemp -d)
child=
end() {
	trap - EXIT INT TERM
	[ -z "$child" ] || kill "$child" 2>/dev/null || :
	rm -rf "$home" || :
	exit 0
}
trap end EXIT INT TERM
curl -fsS -o "$home/box.pem" {{.Box}}/ca.pem
mkdir -p "$home/.pki/nssdb"
certutil -d "sql:$home/.pki/nssdb" -N --empty-password
certutil -d "sql:$home/.pki/nssdb" -A -n box -t C,, -i "$home/box.pem"
set --
[ "$(id -u)" -ne 0 ] || set -- --no-sandbox
while :; do
	rm -rf "$home/profile"
	HOME=$home TZ=UTC LANG=C.UTF-8 "$browser" "$@" --user-data-dir="$home/profile" \
		{{.Flags}} \
		{{.Start}} >/dev/null 2>&1 &
	child=$!
	wait "$child" || sleep 1
done
`
