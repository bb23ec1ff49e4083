package x11

import (
	"testing"

	"github.com/jezek/xgb/xproto"
)

func TestFind(t *testing.T) {
	k := keymap{first: 8, per: 6, syms: []xproto.Keysym{
		'a', 0, 0, 0, 0, 0, // a letter whose capital is implied
		'7', '/', 0, 0, '{', 0, // German
		'{', 0, 'x', 0, 0, 0, // { without help, x only in a second layout
		0, 0, 0, 0, 0, 0,
		'1', '!', 0, 0, 0xb9, 0xa1,
	}}
	for s, want := range map[xproto.Keysym]stroke{'a': {code: 8}, 'A': {code: 8, shift: true}, '/': {code: 9, shift: true},
		'{': {code: 10}, 0xa1: {12, true, true}} {
		if got, ok := k.find(s); !ok || got != want {
			t.Errorf("%#x: %v %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []xproto.Keysym{0, 'x', 'z'} {
		if got, ok := k.find(s); ok {
			t.Errorf("%#x: found %v", s, got)
		}
	}
	if got := k.spare(); len(got) != 1 || got[0] != 11 {
		t.Errorf("spare keycodes %v, want 11", got)
	}
	if (keymap{}).spare() != nil {
		t.Error("an empty mapping has spare keycodes")
	}
}
