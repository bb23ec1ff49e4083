package radio

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// What is read of a message is bounded.
const (
	mostRadios   = 64
	mostChannels = 256 // of a radio
	mostStations = 16  // that a trial keeps
)

// errShort is of a message that ends too early.
var errShort = errors.New("a message of the kernel is cut off") // constant

// attribute is one of a message.
type attribute struct {
	kind  uint16
	value []byte
}

// number is an integer of any size that the kernel uses; false if it has another one.
func (a attribute) number() (uint64, bool) {
	switch len(a.value) {
	case 1:
		return uint64(a.value[0]), true
	case 2:
		return uint64(binary.NativeEndian.Uint16(a.value)), true
	case 4:
		return uint64(binary.NativeEndian.Uint32(a.value)), true
	case 8:
		return binary.NativeEndian.Uint64(a.value), true
	}
	return 0, false
}

// text is what stands before the first zero.
func (a attribute) text() string {
	before, _, _ := strings.Cut(string(a.value), "\x00")
	return before
}

// attributes reads those that are nested in another one, or in a message without its header. The library's own reader
// panics where the last one is not filled up.
func attributes(b []byte) (list []attribute, err error) {
	for len(b) >= unix.SizeofRtAttr {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofRtAttr || size > len(b) {
			return nil, errShort
		}
		list = append(list, attribute{kind & nl.NLA_TYPE_MASK, b[unix.SizeofRtAttr:size]})
		b = b[min(len(b), (size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
	}
	return list, nil
}

// each calls f with the attributes of every message.
func each(messages [][]byte, f func([]attribute) error) error {
	for _, m := range messages {
		if len(m) < nl.SizeofGenlmsg {
			return errShort
		}
		list, err := attributes(m[nl.SizeofGenlmsg:])
		if err == nil {
			err = f(list)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the number of an attribute; 0 without it.
func find(list []attribute, kind uint16) (n uint64) {
	for _, a := range list {
		if a.kind == kind {
			n, _ = a.number()
		}
	}
	return n
}

// parseRadios reads radios, of which each message tells a part.
func parseRadios(messages [][]byte) (radios []Radio, err error) {
	err = each(messages, func(list []attribute) error {
		index := uint32(find(list, unix.NL80211_ATTR_WIPHY))
		at := slices.IndexFunc(radios, func(r Radio) bool { return r.index == index })
		if at < 0 && len(radios) < mostRadios {
			at, radios = len(radios), append(radios, Radio{index: index})
		}
		if at < 0 {
			return nil
		}
		return radios[at].add(list)
	})
	for _, r := range radios {
		slices.SortFunc(r.Channels, func(a, b Channel) int { return a.MHz - b.MHz })
	}
	return radios, err
}

// add reads a part of a radio.
func (r *Radio) add(list []attribute) error {
	for _, a := range list {
		switch a.kind {
		case unix.NL80211_ATTR_WIPHY_NAME:
			r.Name = a.text()
		case unix.NL80211_ATTR_MAX_AP_ASSOC_STA:
			n, _ := a.number()
			r.MostStations = int(n & 0xffff)
		case unix.NL80211_ATTR_SUPPORTED_IFTYPES:
			kinds, err := attributes(a.value)
			if err != nil {
				return err
			}
			r.AccessPoint = slices.ContainsFunc(kinds, func(k attribute) bool { return k.kind == unix.NL80211_IFTYPE_AP })
		case unix.NL80211_ATTR_WIPHY_BANDS:
			if err := r.addBands(a.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// addBands reads the channels of bands.
func (r *Radio) addBands(b []byte) error {
	bands, err := attributes(b)
	if err != nil {
		return err
	}
	for _, band := range bands {
		parts, err := attributes(band.value)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if part.kind != unix.NL80211_BAND_ATTR_FREQS {
				continue
			}
			frequencies, err := attributes(part.value)
			if err != nil {
				return err
			}
			for _, f := range frequencies {
				known, err := attributes(f.value)
				if err != nil {
					return err
				}
				r.addChannel(known)
			}
		}
	}
	return nil
}

// addChannel reads one channel.
func (r *Radio) addChannel(known []attribute) {
	c := Channel{MHz: int(uint32(find(known, unix.NL80211_FREQUENCY_ATTR_FREQ)))}
	c.Number = numberOf(c.MHz)
	for _, a := range known {
		switch a.kind {
		case unix.NL80211_FREQUENCY_ATTR_DISABLED:
			c.Disabled = true
		case unix.NL80211_FREQUENCY_ATTR_NO_IR:
			c.Listen = true
		case unix.NL80211_FREQUENCY_ATTR_RADAR:
			c.Radar = true
		}
	}
	if c.Number > 0 && len(r.Channels) < mostChannels {
		r.Channels = append(r.Channels, c)
	}
}

// numberOf is the number of the channel with a frequency (IEEE 802.11, 17.3.8.4.2 and annex E); 0 for one that the box
// does not know.
func numberOf(mhz int) int {
	switch {
	case mhz == 2484:
		return 14
	case mhz >= 2412 && mhz <= 2472:
		return (mhz - 2407) / 5
	case mhz >= 5160 && mhz <= 5885:
		return (mhz - 5000) / 5
	case mhz >= 5955 && mhz <= 7115:
		return (mhz - 5950) / 5
	}
	return 0
}

// parseInterfaces gives radios the names of their interfaces.
func parseInterfaces(messages [][]byte, radios []Radio) error {
	return each(messages, func(list []attribute) error {
		index := uint32(find(list, unix.NL80211_ATTR_WIPHY))
		for _, a := range list {
			if at := slices.IndexFunc(radios, func(r Radio) bool { return r.index == index }); at >= 0 && a.kind == unix.NL80211_ATTR_IFNAME {
				radios[at].Interfaces = append(radios[at].Interfaces, a.text())
			}
		}
		return nil
	})
}

// parseFrequency finds the frequency that an interface uses; 0 if it uses none.
func parseFrequency(messages [][]byte, index uint32) (mhz int, err error) {
	err = each(messages, func(list []attribute) error {
		if uint32(find(list, unix.NL80211_ATTR_IFINDEX)) == index {
			mhz = int(uint32(find(list, unix.NL80211_ATTR_WIPHY_FREQ)))
		}
		return nil
	})
	return mhz, err
}

// parseCountry finds the country whose rules all radios keep that have none of their own.
func parseCountry(messages [][]byte) (country string, err error) {
	err = each(messages, func(list []attribute) error {
		own := slices.ContainsFunc(list, func(a attribute) bool { return a.kind == unix.NL80211_ATTR_WIPHY })
		for _, a := range list {
			if a.kind == unix.NL80211_ATTR_REG_ALPHA2 && !own && len(a.text()) == 2 {
				country = a.text()
			}
		}
		return nil
	})
	return country, err
}

// parseSurvey reads how busy the channel in use was.
func parseSurvey(messages [][]byte, air *lab.Air) error {
	return each(messages, func(list []attribute) error {
		for _, a := range list {
			if a.kind != unix.NL80211_ATTR_SURVEY_INFO {
				continue
			}
			info, err := attributes(a.value)
			if err != nil {
				return err
			}
			inUse := slices.ContainsFunc(info, func(a attribute) bool { return a.kind == unix.NL80211_SURVEY_INFO_IN_USE })
			if mhz := int(uint32(find(info, unix.NL80211_SURVEY_INFO_FREQUENCY))); !inUse && mhz != air.MHz || mhz == 0 {
				continue
			} else if air.MHz == 0 {
				air.MHz, air.Channel = mhz, numberOf(mhz)
			}
			air.OnMS, air.BusyMS = ms(info, unix.NL80211_SURVEY_INFO_TIME), ms(info, unix.NL80211_SURVEY_INFO_TIME_BUSY)
			air.SentMS, air.HeardMS = ms(info, unix.NL80211_SURVEY_INFO_TIME_TX), ms(info, unix.NL80211_SURVEY_INFO_TIME_RX)
			air.Noise = dBm(info, unix.NL80211_SURVEY_INFO_NOISE)
		}
		return nil
	})
}

// ms is a time; what no radio can have counted is 0.
func ms(list []attribute, kind uint16) int64 {
	const most = 1e15
	if n := find(list, kind); n < most {
		return int64(n)
	}
	return 0
}

// dBm is a strength, which the kernel tells in a signed byte; nil without it.
func dBm(list []attribute, kind uint16) *int {
	for _, a := range list {
		if a.kind == kind && len(a.value) == 1 {
			n := int(int8(a.value[0]))
			return &n
		}
	}
	return nil
}

// parseStations reads the devices that have joined.
func parseStations(messages [][]byte) (stations []lab.AirStation, err error) {
	err = each(messages, func(list []attribute) error {
		var s lab.AirStation
		for _, a := range list {
			switch {
			case a.kind == unix.NL80211_ATTR_MAC && len(a.value) == 6:
				s.MAC = net.HardwareAddr(a.value).String()
			case a.kind == unix.NL80211_ATTR_STA_INFO:
				info, err := attributes(a.value)
				if err != nil {
					return err
				}
				if s.Signal = dBm(info, unix.NL80211_STA_INFO_SIGNAL_AVG); s.Signal == nil {
					s.Signal = dBm(info, unix.NL80211_STA_INFO_SIGNAL)
				}
				s.Packets = int64(uint32(find(info, unix.NL80211_STA_INFO_TX_PACKETS)))
				s.Retries = int64(uint32(find(info, unix.NL80211_STA_INFO_TX_RETRIES)))
				s.Failed = int64(uint32(find(info, unix.NL80211_STA_INFO_TX_FAILED)))
				s.ToMbps, s.OfMbps = rate(info, unix.NL80211_STA_INFO_TX_BITRATE), rate(info, unix.NL80211_STA_INFO_RX_BITRATE)
			}
		}
		if s.MAC != "" && len(stations) < mostStations {
			stations = append(stations, s)
		}
		return nil
	})
	slices.SortFunc(stations, func(a, b lab.AirStation) int { return strings.Compare(a.MAC, b.MAC) })
	return stations, err
}

// rate is one in Mbit/s, of which the kernel counts tenths; nil if it is unknown.
func rate(info []attribute, kind uint16) *float64 {
	for _, a := range info {
		if a.kind != kind {
			continue
		}
		parts, err := attributes(a.value)
		if n := uint32(find(parts, unix.NL80211_RATE_INFO_BITRATE32)); err == nil && n > 0 {
			mbps := float64(n) / 10
			return &mbps
		}
	}
	return nil
}
