// Package radio asks the kernel about Wi-Fi radios: what they can do, how busy their channel is, and how well they and
// the devices that joined them hear each other. It speaks nl80211 (linux/nl80211.h) over generic netlink. In go the
// names of interfaces; out come radios, and the state of the air at one instant. It changes nothing, and needs no
// privileges.
package radio

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// Radio is a Wi-Fi radio, as its driver describes it under the rules of the present country.
type Radio struct {
	Name       string   // "phy0"
	Interfaces []string // "wlan0"
	// AccessPoint says that it can be one.
	AccessPoint bool
	// MostStations is how many devices may join it at once; 0 where its driver names no limit.
	MostStations int
	Channels     []Channel // in the order of their frequencies

	index uint32
}

// Channel is one that a radio has.
type Channel struct {
	Number, MHz int
	Disabled    bool // by the rules of the country
	Listen      bool // nobody may begin to send there, so an access point cannot (no-IR)
	Radar       bool // an access point must listen for radar first
}

// IsOpen says whether the box may make an access point there now.
func (c Channel) IsOpen() bool { return !c.Disabled && !c.Listen && !c.Radar }

// Open lists the numbers of the channels between two frequencies on which the box may make an access point now.
func (r Radio) Open(from, to int) (numbers []int) {
	for _, c := range r.Channels {
		if c.MHz >= from && c.MHz <= to && c.IsOpen() {
			numbers = append(numbers, c.Number)
		}
	}
	return numbers
}

// has says whether there is a channel between two frequencies, whatever its rules.
func (r Radio) has(from, to int) bool {
	return slices.ContainsFunc(r.Channels, func(c Channel) bool { return c.MHz >= from && c.MHz <= to })
}

// Frequencies of the bands that the box uses, in MHz.
const (
	Low2, High2 = 2400, 2500
	Low5, High5 = 5150, 5900
)

// Has5GHz says whether it has the 5 GHz band, whatever the rules of the country.
func (r Radio) Has5GHz() bool { return r.has(Low5, High5) }

// list asks for all of something, and again where the list changed meanwhile.
func list(command uint8, attributes ...*nl.RtAttr) (all [][]byte, err error) {
	family, err := netlink.GenlFamilyGet(unix.NL80211_GENL_NAME)
	if err != nil {
		return nil, fmt.Errorf("the kernel has no Wi-Fi (nl80211): %w", err)
	}
	const most = 5
	for range most {
		request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_DUMP)
		request.AddData(&nl.Genlmsg{Command: command})
		for _, a := range attributes {
			request.AddData(a)
		}
		if all, err = request.Execute(unix.NETLINK_GENERIC, 0); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// All lists the radios of this network namespace, and the country whose rules they keep: "DE", or "00" for what is
// allowed everywhere. A kernel without Wi-Fi has none.
func All() (radios []Radio, country string, err error) {
	messages, err := list(unix.NL80211_CMD_GET_WIPHY, nl.NewRtAttr(unix.NL80211_ATTR_SPLIT_WIPHY_DUMP, nil))
	if errors.Is(err, unix.ENOENT) {
		return nil, "", nil
	}
	if err == nil {
		radios, err = parseRadios(messages)
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking for radios: %w", err)
	}
	if messages, err = list(unix.NL80211_CMD_GET_INTERFACE); err == nil {
		err = parseInterfaces(messages, radios)
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking for the interfaces of radios: %w", err)
	}
	if messages, err = list(unix.NL80211_CMD_GET_REG); err == nil {
		country, err = parseCountry(messages)
	}
	if err != nil {
		return nil, "", fmt.Errorf("asking for the radios' country: %w", err)
	}
	return radios, country, nil
}

// Now reads the air of an access point's interface.
func Now(name string) (*lab.Air, error) {
	fail := func(err error) (*lab.Air, error) {
		return nil, fmt.Errorf("asking the radio %s for its channel: %w", name, err)
	}
	link, err := net.InterfaceByName(name)
	if err != nil {
		return fail(err)
	}
	index := func() *nl.RtAttr { return nl.NewRtAttr(unix.NL80211_ATTR_IFINDEX, nl.Uint32Attr(uint32(link.Index))) }
	air := &lab.Air{}
	messages, err := list(unix.NL80211_CMD_GET_INTERFACE)
	if err == nil {
		air.MHz, err = parseFrequency(messages, uint32(link.Index))
	}
	if err != nil {
		return fail(err)
	}
	air.Channel = numberOf(air.MHz)
	if messages, err = list(unix.NL80211_CMD_GET_SURVEY, index()); err == nil {
		err = parseSurvey(messages, air)
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) { // a driver that does not count
		return fail(err)
	}
	if messages, err = list(unix.NL80211_CMD_GET_STATION, index()); err == nil {
		air.Stations, err = parseStations(messages)
	}
	if err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fail(err)
	}
	return air, nil
}
