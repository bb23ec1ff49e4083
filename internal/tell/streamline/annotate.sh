# shellcheck shell=sh
# Notes for the timeline of a run, from a shell script: source this file, which `appliance annotate --code sh` writes.
# EIDETIC_ANNOTATE names the pipe of `appliance annotate --fifo FILE`; without a pipe there, nothing happens.
#   note begin "read the settings"; note mark "found"; note pause; note resume; note end "read the settings"
#   note set "cache is warm" "#800000"        until the next note set; note set "" ends it
# Each note is one write of less than PIPE_BUF bytes, which the kernel never mixes with another program's. A note waits
# while the pipe is full. Its time is that of its arrival: sh has no clock that is good enough.
note() {
	_note_pipe=${EIDETIC_ANNOTATE:-/tmp/annotate}
	[ -p "$_note_pipe" ] || return 0
	_note_text=$2
	case $_note_text in
	*"
"*) _note_text=$(printf %s "$_note_text" | tr '\n' ' ') ;; # bash writes each line by itself
	esac
	printf '\001note\037%.8s\037%.60s %d\037\037%.7s\037\037%.900s\000' \
		"$1" "${0##*/}" $$ "${3-}" "$_note_text" 1<>"$_note_pipe"
}
