package hid

// blueprints are the layouts. TestLayoutsAgreeWithXKB holds them against xkeyboard-config's.
func blueprints() []blueprint {
	french := blueprint{
		name:  "fr",
		iso:   true,
		plain: [4]string{`²&é"'(-è_çà)=`, "azertyuiop·$", "qsdfghjklmù*", "<wxcvbn,;:!"},
		shift: [4]string{"·1234567890°+", "AZERTYUIOP·£", "QSDFGHJKLM%µ", ">WXCVBN?./§"},
		high:  [4]string{"··~#{[|`\\^@]}", "··€········¤", "············", "···········"},
		dead:  map[string]Stroke{"circumflex": {0, 0x2f}, "diaeresis": {bitShift, 0x2f}},
	}
	windows := french
	windows.name = "fr-windows"
	windows.high[0] = "···#{[|·\\^@]}"
	windows.dead = map[string]Stroke{
		"circumflex": {0, 0x2f}, "diaeresis": {bitShift, 0x2f}, "tilde": {bitAltGr, 0x1f}, "grave": {bitAltGr, 0x24},
	}
	return []blueprint{
		{
			name:  "us",
			plain: [4]string{"`1234567890-=", "qwertyuiop[]", `asdfghjkl;'\`, "·zxcvbnm,./"},
			shift: [4]string{"~!@#$%^&*()_+", "QWERTYUIOP{}", `ASDFGHJKL:"|`, "·ZXCVBNM<>?"},
		},
		{
			name:  "de",
			iso:   true,
			plain: [4]string{"·1234567890ß·", "qwertzuiopü+", "asdfghjklöä#", "<yxcvbnm,.-"},
			shift: [4]string{`°!"§$%&/()=?·`, "QWERTZUIOPÜ*", "ASDFGHJKLÖÄ'", ">YXCVBNM;:_"},
			high:  [4]string{`··²³···{[]}\·`, "@·€········~", "············", "|······µ···"},
			dead:  map[string]Stroke{"circumflex": {0, 0x35}, "acute": {0, 0x2e}, "grave": {bitShift, 0x2e}},
		},
		french,
		windows,
		{
			name:  "ja",
			iso:   true,
			plain: [4]string{"·1234567890-^", "qwertyuiop@[", "asdfghjkl;:]", "·zxcvbnm,./"},
			shift: [4]string{"·!\"#$%&'()·=~", "QWERTYUIOP`{", "ASDFGHJKL+*}", "·ZXCVBNM<>?"},
			more:  map[rune]Stroke{'\\': {0, usageIntl1}, '_': {bitShift, usageIntl1}, '|': {bitShift, usageIntl3}},
		},
		{
			name:  "dvorak",
			plain: [4]string{"`1234567890[]", "',.pyfgcrl/=", `aoeuidhtns-\`, "·;qjkxbmwvz"},
			shift: [4]string{"~!@#$%^&*(){}", `"<>PYFGCRL?+`, "AOEUIDHTNS_|", "·:QJKXBMWVZ"},
		},
	}
}
