package radio

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// message is one of the kernel, with its header and so many attributes.
func message(parts ...*nl.RtAttr) []byte {
	b := make([]byte, nl.SizeofGenlmsg)
	for _, p := range parts {
		b = append(b, p.Serialize()...)
	}
	return b
}

func number(kind int, n uint32) *nl.RtAttr {
	return nl.NewRtAttr(kind, binary.NativeEndian.AppendUint32(nil, n))
}

func long(kind int, n uint64) *nl.RtAttr {
	return nl.NewRtAttr(kind, binary.NativeEndian.AppendUint64(nil, n))
}

// nested is an attribute that holds others, marked as the kernel marks it.
func nested(kind int, parts ...*nl.RtAttr) *nl.RtAttr {
	a := nl.NewRtAttr(kind|unix.NLA_F_NESTED, nil)
	for _, p := range parts {
		a.AddChild(p)
	}
	return a
}

func band(number int, frequencies ...*nl.RtAttr) *nl.RtAttr {
	return nested(unix.NL80211_ATTR_WIPHY_BANDS, nested(number, nested(unix.NL80211_BAND_ATTR_FREQS, frequencies...)))
}

func channel(at int, mhz uint32, flags ...int) *nl.RtAttr {
	c := nested(at, number(unix.NL80211_FREQUENCY_ATTR_FREQ, mhz))
	for _, f := range flags {
		c.AddChild(nl.NewRtAttr(f, nil))
	}
	return c
}

// split are the messages of two radios, as the kernel splits them.
func split() [][]byte {
	wiphy := func(n uint32, name string) []*nl.RtAttr {
		return []*nl.RtAttr{number(unix.NL80211_ATTR_WIPHY, n), nl.NewRtAttr(unix.NL80211_ATTR_WIPHY_NAME, nl.ZeroTerminated(name))}
	}
	of := func(n uint32, name string, parts ...*nl.RtAttr) []byte {
		return message(append(wiphy(n, name), parts...)...)
	}
	return [][]byte{
		of(3, "phy3", nested(unix.NL80211_ATTR_SUPPORTED_IFTYPES, nl.NewRtAttr(unix.NL80211_IFTYPE_STATION, nil), nl.NewRtAttr(unix.NL80211_IFTYPE_AP, nil))),
		of(3, "phy3", band(1, channel(0, 5180), channel(1, 5260, unix.NL80211_FREQUENCY_ATTR_RADAR, unix.NL80211_FREQUENCY_ATTR_NO_IR))),
		of(3, "phy3", band(0, channel(0, 2412), channel(13, 2484, unix.NL80211_FREQUENCY_ATTR_DISABLED)), number(unix.NL80211_ATTR_MAX_AP_ASSOC_STA, 12)),
		of(7, "phy7", nested(unix.NL80211_ATTR_SUPPORTED_IFTYPES, nl.NewRtAttr(unix.NL80211_IFTYPE_STATION, nil))),
	}
}

// TestRadios: a radio is told in several messages.
func TestRadios(t *testing.T) {
	radios, err := parseRadios(split())
	if err == nil {
		err = parseInterfaces([][]byte{
			message(number(unix.NL80211_ATTR_WIPHY, 3), nl.NewRtAttr(unix.NL80211_ATTR_IFNAME, nl.ZeroTerminated("wlan0"))),
			message(number(unix.NL80211_ATTR_WIPHY, 9), nl.NewRtAttr(unix.NL80211_ATTR_IFNAME, nl.ZeroTerminated("wlan9"))),
		}, radios)
	}
	want := []Radio{
		{Name: "phy3", Interfaces: []string{"wlan0"}, AccessPoint: true, MostStations: 12, Channels: []Channel{
			{Number: 1, MHz: 2412}, {Number: 14, MHz: 2484, Disabled: true}, {Number: 36, MHz: 5180}, {Number: 52, MHz: 5260, Listen: true, Radar: true}}},
		{Name: "phy7"},
	}
	if d := cmp.Diff(want, radios, cmpopts.IgnoreUnexported(Radio{})); err != nil || d != "" {
		t.Errorf("the radios are wrong (%v, - want, + got):\n%s", err, d)
	}
	if open := radios[0].Open(Low5, High5); !cmp.Equal(open, []int{36}) || !radios[0].Has5GHz() || radios[1].Has5GHz() {
		t.Errorf("open channels of 5 GHz: %v, want 36", open)
	}
	country, err := parseCountry([][]byte{
		message(nl.NewRtAttr(unix.NL80211_ATTR_REG_ALPHA2, []byte("DE\x00"))),
		message(number(unix.NL80211_ATTR_WIPHY, 3), nl.NewRtAttr(unix.NL80211_ATTR_REG_ALPHA2, []byte("US\x00"))),
	})
	if country != "DE" || err != nil {
		t.Errorf("the country is %q, %v; want that of all radios", country, err)
	}
	for mhz, want := range map[int]int{2412: 1, 2472: 13, 2484: 14, 5180: 36, 5825: 165, 5955: 1, 60480: 0, 0: 0} {
		if got := numberOf(mhz); got != want {
			t.Errorf("numberOf(%d) = %d, want %d", mhz, got, want)
		}
	}
}

// air are the answers about a channel and two stations.
func air() (survey, stations [][]byte) {
	at := func(mhz uint32, parts ...*nl.RtAttr) []byte {
		return message(number(unix.NL80211_ATTR_IFINDEX, 5), nested(unix.NL80211_ATTR_SURVEY_INFO, append(parts, number(unix.NL80211_SURVEY_INFO_FREQUENCY, mhz))...))
	}
	station := func(last byte, parts ...*nl.RtAttr) []byte {
		return message(nl.NewRtAttr(unix.NL80211_ATTR_MAC, []byte{2, 0, 0, 0, 1, last}), nested(unix.NL80211_ATTR_STA_INFO, parts...))
	}
	minus := func(n int) []byte { return []byte{byte(256 - n)} }
	survey = [][]byte{
		at(2412, nl.NewRtAttr(unix.NL80211_SURVEY_INFO_NOISE, minus(90))),
		at(2437, nl.NewRtAttr(unix.NL80211_SURVEY_INFO_NOISE, minus(95)), nl.NewRtAttr(unix.NL80211_SURVEY_INFO_IN_USE, nil),
			long(unix.NL80211_SURVEY_INFO_TIME, 60_000), long(unix.NL80211_SURVEY_INFO_TIME_BUSY, 9_000), long(unix.NL80211_SURVEY_INFO_TIME_TX, 700),
			long(unix.NL80211_SURVEY_INFO_TIME_RX, 1<<63)),
	}
	stations = [][]byte{
		station(9, nl.NewRtAttr(unix.NL80211_STA_INFO_SIGNAL, minus(71))),
		station(8, nl.NewRtAttr(unix.NL80211_STA_INFO_SIGNAL_AVG, minus(48)), nl.NewRtAttr(unix.NL80211_STA_INFO_SIGNAL, minus(50)),
			number(unix.NL80211_STA_INFO_TX_PACKETS, 900), number(unix.NL80211_STA_INFO_TX_RETRIES, 31), number(unix.NL80211_STA_INFO_TX_FAILED, 2),
			nested(unix.NL80211_STA_INFO_TX_BITRATE, number(unix.NL80211_RATE_INFO_BITRATE32, 1733))),
	}
	return survey, stations
}

// TestAir: the channel in use and the stations are read, and what cannot be is left out.
func TestAir(t *testing.T) {
	survey, stations := air()
	got := &lab.Air{MHz: 2437, Channel: 6}
	err := parseSurvey(survey, got)
	if err == nil {
		got.Stations, err = parseStations(stations)
	}
	signal, weak, noise, rate := -48, -71, -95, 173.3
	want := &lab.Air{Channel: 6, MHz: 2437, OnMS: 60_000, BusyMS: 9_000, SentMS: 700, Noise: &noise, Stations: []lab.AirStation{
		{MAC: "02:00:00:00:01:08", Signal: &signal, Packets: 900, Retries: 31, Failed: 2, ToMbps: &rate}, {MAC: "02:00:00:00:01:09", Signal: &weak}}}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("the air is wrong (%v, - want, + got):\n%s", err, d)
	}
}

// recorded are the messages of testdata/hwsim.txt by their commands.
func recorded(t testing.TB) map[int][][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/hwsim.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[int][][]byte{}
	for line := range strings.Lines(string(text)) {
		command, message, _ := strings.Cut(strings.TrimSpace(line), " ")
		if command == "#" {
			continue
		}
		n, err := strconv.Atoi(command)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(message)
		if err != nil {
			t.Fatal(err)
		}
		all[n] = append(all[n], b)
	}
	return all
}

// TestRecorded reads what a kernel answered of a simulated radio, and of a station that then loaded a page.
func TestRecorded(t *testing.T) {
	all := recorded(t)
	radios, err := parseRadios(all[unix.NL80211_CMD_GET_WIPHY])
	if err == nil {
		err = parseInterfaces(all[unix.NL80211_CMD_GET_INTERFACE], radios)
	}
	if err != nil || len(radios) != 1 {
		t.Fatalf("%d radios, %v; want one", len(radios), err)
	}
	r := radios[0]
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !r.AccessPoint || !r.Has5GHz() || !cmp.Equal(r.Open(Low2, High2), want) ||
		len(r.Open(Low5, High5)) > 0 || r.MostStations != 0 || !cmp.Equal(r.Interfaces, []string{"wlan0"}) {
		t.Errorf("the radio is %+v; want an access point on the channels %v", r, want)
	}
	if country, err := parseCountry(all[unix.NL80211_CMD_GET_REG]); country != "00" || err != nil {
		t.Errorf("the country is %q, %v; want 00", country, err)
	}
	if mhz, err := parseFrequency(all[unix.NL80211_CMD_GET_INTERFACE], 6); mhz != 2437 || err != nil {
		t.Errorf("wlan0 is at %d MHz, %v; want 2437", mhz, err)
	}
	messages, conditions := all[unix.NL80211_CMD_GET_STATION], []lab.Conditions{}
	for i := range messages {
		stations, err := parseStations(messages[i : i+1])
		if err != nil {
			t.Fatal(err)
		}
		conditions = append(conditions, lab.Conditions{Air: &lab.Air{MHz: 2437, Channel: 6, Stations: stations}})
	}
	const want = "channel 6 (2437 MHz); 02:00:00:00:01:00 at -30 dBm: 34 packets to it, 0 sent again, 0 lost"
	if got := lab.TellAir(&conditions[0], &conditions[1]); got != want {
		t.Errorf("the air is %q, want %q", got, want)
	}
}

// TestThisMachine: the kernel of this machine answers, or says that it has no Wi-Fi.
func TestThisMachine(t *testing.T) {
	radios, country, err := All()
	t.Logf("%+v, country %q, %v", radios, country, err)
	if _, err := Now("lo"); err == nil {
		t.Error("Now() of an interface without a radio returned no error")
	}
}

// FuzzMessages: whatever a message is, it is read within bounds.
func FuzzMessages(f *testing.F) {
	survey, stations := air()
	for _, list := range append(slices.Collect(maps.Values(recorded(f))), split(), survey, stations) {
		for _, m := range list {
			f.Add(m)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		messages := [][]byte{b, b}
		radios, _ := parseRadios(messages)
		_ = parseInterfaces(messages, radios)
		for _, r := range radios {
			if len(r.Channels) > mostChannels {
				t.Errorf("%d channels", len(r.Channels))
			}
		}
		_, _ = parseCountry(messages)
		_, _ = parseFrequency(messages, 5)
		a := &lab.Air{}
		if _ = parseSurvey(messages, a); a.OnMS < 0 || a.BusyMS < 0 {
			t.Errorf("times %+v", a)
		}
		if all, _ := parseStations(messages); len(all) > mostStations {
			t.Errorf("%d stations", len(all))
		}
	})
}
