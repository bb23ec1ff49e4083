package lab

import (
	"slices"
	"strings"
	"testing"
)

// TestAir: two readings of a radio say how busy its channel was and what was sent again, and limits hold it.
func TestAir(t *testing.T) {
	near, far := -48, -77
	at := func(on, busy int64, signal *int, packets, retries int64) *Conditions {
		return &Conditions{Air: &Air{Channel: 6, MHz: 2437, OnMS: on, BusyMS: busy, Stations: []AirStation{
			{MAC: "02:00:00:00:01:08", Signal: signal, Packets: packets, Retries: retries}}}}
	}
	before, after := at(1_000, 100, &near, 40, 3), at(9_000, 2_500, &far, 240, 13)
	const want = "channel 6 (2437 MHz); busy for 30 % of 8.0 s; 02:00:00:00:01:08 at -77 dBm: 200 packets to it, 10 sent again, 0 lost"
	if got := TellAir(before, after); got != want {
		t.Errorf("TellAir() = %q, want %q", got, want)
	}
	again := at(9_000, 2_500, &far, 2, 0)
	if got := TellAir(before, again); !strings.Contains(got, "joined again meanwhile") {
		t.Errorf("TellAir() of a device that joined again = %q", got)
	}
	if got := TellAir(before, &Conditions{}); got != "" {
		t.Errorf("TellAir() at a cable = %q", got)
	}
	l := Limits{SignalMin: -60, AirBusyMax: 25}
	if got := l.Broken(*before); got != nil {
		t.Errorf("Broken() of a device nearby = %q", got)
	}
	if got := l.Broken(*after); !slices.Equal(got, []string{"the box hears the device at -77 dBm, and at least -60 dBm are asked for"}) {
		t.Errorf("Broken() of a device far away = %q", got)
	}
	if got := l.BrokenBetween(before, after); !slices.Equal(got, []string{"the Wi-Fi channel was busy for 30 % of the trial, and at most 25 % are asked for"}) {
		t.Errorf("BrokenBetween() = %q", got)
	}
	if got := l.BrokenBetween(after, before); got != nil { // the radio was switched off meanwhile
		t.Errorf("BrokenBetween() of counters that began anew = %q", got)
	}
	if got := l.Missing(Conditions{}); !slices.Equal(got, []string{"signal_min_dbm", "air_busy_max_percent"}) {
		t.Errorf("Missing() at a cable = %q", got)
	}
	if got := l.Missing(*at(0, 0, &near, 0, 0)); !slices.Equal(got, []string{"air_busy_max_percent"}) {
		t.Errorf("Missing() of a radio that does not count = %q", got)
	}
}
