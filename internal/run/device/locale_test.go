package device

import "testing"

func TestZoneName(t *testing.T) {
	for offset, want := range map[string]string{
		"+00:00": "UTC", "+02:00": "Etc/GMT-2", "-10:00": "Etc/GMT+10", "+05:45": "Asia/Kathmandu", "+05:10": "", "": "", "x": "",
	} {
		if got := zoneName(offset); got != want {
			t.Errorf("zoneName(%q) = %q, want %q", offset, got, want)
		}
	}
}
