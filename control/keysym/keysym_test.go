package keysym_test

import (
	"testing"

	"eidetic/control"
	"eidetic/control/keysym"
)

func TestKeysyms(t *testing.T) {
	for _, name := range control.KeyNames() {
		if s, ok := keysym.Named(name); !ok || s == 0 {
			t.Errorf("the key %s has no keysym", name)
		}
	}
	for key, want := range map[string]uint32{
		"a": 'a', "F": 'F', "F1": 0xffbe, "F24": 0xffd5, "é": 0xe9, "€": 0x010020ac, "я": 0x0100044f, "Enter": 0xff0d, "\t": 0xff09,
	} {
		if got := keysym.OfKey(key); got != want {
			t.Errorf("%s: keysym %#x, want %#x", key, got, want)
		}
	}
	if keysym.OfModifier(control.Meta) != 0xffeb || keysym.OfModifier(control.Shift) != 0xffe1 {
		t.Error("modifiers are mixed up")
	}
}
