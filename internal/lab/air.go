package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Air is what a radio of the box tells of its channel and of those who joined it, at one instant.
type Air struct {
	Channel int `json:"channel"`
	MHz     int `json:"mhz"`
	// OnMS is how long the radio has listened to the channel since some time in the past, BusyMS how long somebody sent
	// meanwhile, SentMS and HeardMS how long the radio itself sent and received; 0 where its driver does not count.
	OnMS    int64 `json:"on_ms,omitempty"`
	BusyMS  int64 `json:"busy_ms,omitempty"`
	SentMS  int64 `json:"sent_ms,omitempty"`
	HeardMS int64 `json:"heard_ms,omitempty"`
	Noise   *int  `json:"noise_dbm,omitempty"`
	// Stations are the devices that have joined, ordered by their addresses.
	Stations []AirStation `json:"stations,omitempty"`
}

// AirStation is a device that has joined a radio. What is counted is counted since it joined.
type AirStation struct {
	MAC     string   `json:"mac"`
	Signal  *int     `json:"signal_dbm,omitempty"` // of what the device sent
	Packets int64    `json:"packets,omitempty"`    // sent to it
	Retries int64    `json:"retries,omitempty"`    // how often one of them was sent again
	Failed  int64    `json:"failed,omitempty"`     // how many of them never arrived
	ToMbps  *float64 `json:"to_mbps,omitempty"`    // rate of the last packet to it
	OfMbps  *float64 `json:"of_mbps,omitempty"`    // rate of the last packet of it
}

// signal is that of the device heard worst; nil if it is unknown.
func (a *Air) signal() (worst *int) {
	if a == nil {
		return nil
	}
	for _, s := range a.Stations {
		if s.Signal != nil && (worst == nil || *s.Signal < *worst) {
			worst = s.Signal
		}
	}
	return worst
}

// AirBusy is how busy a channel was between two readings, in percent; false if the radio does not tell.
func AirBusy(before, after *Conditions) (percent, seconds float64, known bool) {
	if before == nil || after == nil || before.Air == nil || after.Air == nil || before.Air.MHz != after.Air.MHz {
		return 0, 0, false
	}
	on, busy := after.Air.OnMS-before.Air.OnMS, after.Air.BusyMS-before.Air.BusyMS
	if on <= 0 || busy < 0 {
		return 0, 0, false
	}
	return min(100, 100*float64(busy)/float64(on)), float64(on) / 1e3, true
}

// TellAir says what happened on a channel between two readings, or "".
func TellAir(before, after *Conditions) string {
	if after == nil || after.Air == nil {
		return ""
	}
	now := after.Air
	words := []string{fmt.Sprintf("channel %d (%d MHz)", now.Channel, now.MHz)}
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if percent, seconds, ok := AirBusy(before, after); ok {
		say("busy for %.0f %% of %.1f s", percent, seconds)
		if sent, heard := now.SentMS-before.Air.SentMS, now.HeardMS-before.Air.HeardMS; sent > 0 || heard > 0 {
			words[len(words)-1] += fmt.Sprintf(", of which the box sent for %d ms and received for %d ms", max(0, sent), max(0, heard))
		}
	}
	if now.Noise != nil {
		say("noise %d dBm", *now.Noise)
	}
	for _, s := range now.Stations {
		say("%s", s.since(before))
	}
	return strings.Join(words, "; ")
}

// since tells of a device what was counted since a reading before.
func (s AirStation) since(before *Conditions) string {
	text := s.MAC
	if s.Signal != nil {
		text += fmt.Sprintf(" at %d dBm", *s.Signal)
	}
	if before == nil || before.Air == nil {
		return text
	}
	then := slices.IndexFunc(before.Air.Stations, func(o AirStation) bool { return o.MAC == s.MAC })
	if then < 0 {
		return text + ", which joined meanwhile"
	}
	old := before.Air.Stations[then]
	if s.Packets < old.Packets {
		return text + ", which joined again meanwhile"
	}
	return fmt.Sprintf("%s: %d packets to it, %d sent again, %d lost", text, s.Packets-old.Packets, max(0, s.Retries-old.Retries),
		max(0, s.Failed-old.Failed))
}
