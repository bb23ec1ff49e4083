// Package power switches a device off and on, so that one that hangs can be brought back without a person: by a plug
// that is switched over HTTP (Shelly's or Tasmota's), a USB hub that switches its ports, a relay at a GPIO line, or,
// for a device that has switched itself off, by waking it over the network.
//
// In goes the part of the device's configuration; out comes a switch.
//
// Standards: USB 2.0, 11.24 (class requests to hubs), by Linux's usbfs; Linux's GPIO character device, version 2;
// Shelly's RPC and first-generation HTTP interfaces, Tasmota's web requests, and AMD's Magic Packet.
package power

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Switch is a device's power supply.
type Switch struct {
	part   lab.PowerPart
	client *http.Client
	to     netip.AddrPort // of magic packets
	kernel Kernel
	line   Line // of a relay that keeps the power away; nil is none
}

// Restarts says whether the switch can take the power away, and not only bring it.
func (s *Switch) Restarts() bool { return s.part.WakeOnLAN == "" }

const (
	// answerLimit is how long a plug may take to answer.
	answerLimit = 10 * time.Second
	// answerSize bounds what it answers.
	answerSize = 64 << 10
	// offTime is for how long the power is away: capacitors of power supplies last for seconds.
	offTime = 5 * time.Second
	// A device that was switched off must not stay so because its plug was busy.
	onTries, onPause = 5, time.Second
	// usualBoot is how long a device is given to start, where its configuration does not say.
	usualBoot = time.Minute
)

// Check returns an error, with the field, for a part that no switch can be made of.
func Check(p lab.PowerPart) (field string, err error) {
	if p.Kinds() != 1 {
		return "", errors.New("name one of shelly, tasmota, usb, gpio and wake_on_lan")
	}
	if p.WakeOnLAN != "" {
		if mac, err := net.ParseMAC(p.WakeOnLAN); err != nil || len(mac) != 6 {
			return ".wake_on_lan", fmt.Errorf("%.60q is no hardware address, such as 00:11:22:33:44:55", p.WakeOnLAN)
		}
		return "", nil
	}
	if p.USB != "" || p.GPIO != "" {
		return checkBoxed(p)
	}
	name, at := ".shelly", p.Shelly
	if p.Tasmota != "" {
		name, at = ".tasmota", p.Tasmota
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" {
		return name, fmt.Errorf("%.100q is not the plug's address, such as http://192.168.1.20", at)
	}
	if p.Relay < 0 || p.Relay > 31 {
		return ".relay", fmt.Errorf("%d: at least 0, which is the plug's only or first one, and at most 31", p.Relay)
	}
	return checkBoot(p)
}

// checkBoxed is Check for what is switched at the box itself.
func checkBoxed(p lab.PowerPart) (field string, err error) {
	if p.USB != "" && !usbPlace.MatchString(p.USB) {
		return ".usb", fmt.Errorf("%.40q is no port of a USB hub, such as 1-1.4: the name of the device's folder in /sys/bus/usb/devices", p.USB)
	}
	if p.GPIO != "" && !gpioPlace.MatchString(p.GPIO) {
		return ".gpio", fmt.Errorf("%.40q is no line of a GPIO chip, such as gpiochip0/17", p.GPIO)
	}
	return checkBoot(p)
}

func checkBoot(p lab.PowerPart) (field string, err error) {
	if !(p.Boot >= 0 && p.Boot <= 900) {
		return ".boot_s", fmt.Errorf("%g: at most 900", p.Boot)
	}
	return "", nil
}

// New makes the switch of a part that was checked. Magic packets go to an address of the device's network.
func New(p lab.PowerPart, broadcast netip.Addr, k Kernel) *Switch {
	const discard = 9 // the port that magic packets are sent to by custom
	return &Switch{
		part: p, kernel: k, to: netip.AddrPortFrom(broadcast, discard),
		client: &http.Client{
			Timeout:       answerLimit,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Restart takes the power away and brings it back, or wakes the device, and gives it time to start. However it ends, a
// device that was switched off is switched on again.
func (s *Switch) Restart(ctx context.Context) error {
	var cut error
	if s.Restarts() {
		cut = s.Set(ctx, false) // a plug may have done it although its answer is lost
		if cut == nil {
			cut = lab.Wait(ctx, offTime)
		}
	}
	if err := s.bring(context.WithoutCancel(ctx)); err != nil || cut != nil {
		return cmp.Or(cut, err)
	}
	boot := usualBoot
	if s.part.Boot > 0 {
		boot = time.Duration(s.part.Boot * float64(time.Second))
	}
	return lab.Wait(ctx, boot)
}

// bring switches the power on. A plug that does not answer once may do so a moment later.
func (s *Switch) bring(ctx context.Context) error {
	err := s.Set(ctx, true)
	for n := 1; n < onTries && err != nil; n++ {
		if wait := lab.Wait(ctx, onPause); wait != nil {
			return wait
		}
		err = s.Set(ctx, true)
	}
	return err
}

// Set switches the power on or off, and returns an error unless the plug says that it is so.
func (s *Switch) Set(ctx context.Context, on bool) error {
	var err error
	switch {
	case s.part.Shelly != "":
		err = s.shelly(ctx, on)
	case s.part.Tasmota != "":
		err = s.tasmota(ctx, on)
	case s.part.USB != "":
		err = s.kernel.usb(ctx, s.part.USB, on)
	case s.part.GPIO != "":
		err = s.relay(on)
	case !on:
		err = errors.New("wake_on_lan can only switch a device on")
	default:
		err = s.wake(ctx)
	}
	if err != nil {
		return fmt.Errorf("power: %w", err)
	}
	return nil
}

// errNotFound is a plug's answer to a request that it does not know.
var errNotFound = errors.New("the plug does not know the request") // constant

// get asks the plug, and reads its answer.
func (s *Switch) get(ctx context.Context, base, path string, query url.Values, answer any) error {
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	u.Path, u.RawQuery = path, query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	if !s.part.Password.IsZero() && s.part.Shelly != "" {
		r.SetBasicAuth("admin", s.part.Password.Reveal())
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", u.Host, errors.Unwrap(err)) // the error's own words hold the query with a password
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerSize))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", u.Host, err)
	case resp.StatusCode == http.StatusNotFound:
		return errNotFound
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s asks for another password: set password, or, of a Shelly that takes Digest alone, switch its authentication off", u.Host)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers with status %d: %.100q", u.Host, resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s answers %.100q, which is no JSON of such a plug", u.Host, body)
	}
	return nil
}

// shelly speaks the RPC of the second generation and, if the plug does not know it, the interface of the first.
func (s *Switch) shelly(ctx context.Context, on bool) error {
	base, relay := s.part.Shelly, strconv.Itoa(s.part.Relay)
	err := s.get(ctx, base, "/rpc/Switch.Set", url.Values{"id": {relay}, "on": {strconv.FormatBool(on)}}, new(struct{}))
	var is bool
	if errors.Is(err, errNotFound) {
		var answer struct{ IsOn *bool }
		err = s.get(ctx, base, "/relay/"+relay, url.Values{"turn": {onOff(on)}}, &answer)
		if err == nil && answer.IsOn == nil {
			err = fmt.Errorf("it has no relay %s", relay)
		}
		if err == nil {
			is = *answer.IsOn
		}
	} else if err == nil {
		var answer struct{ Output bool }
		err = s.get(ctx, base, "/rpc/Switch.GetStatus", url.Values{"id": {relay}}, &answer)
		is = answer.Output
	}
	return errors.Join(err, isSo(err, on, is))
}

// tasmota sends the command Power, whose answer names the relay and its state.
func (s *Switch) tasmota(ctx context.Context, on bool) error {
	name := "Power"
	if s.part.Relay > 0 {
		name += strconv.Itoa(s.part.Relay)
	}
	query := url.Values{"cmnd": {name + " " + onOff(on)}}
	if !s.part.Password.IsZero() {
		query.Set("user", "admin")
		query.Set("password", s.part.Password.Reveal())
	}
	var answer map[string]any
	err := s.get(ctx, s.part.Tasmota, "/cm", query, &answer)
	if err == nil {
		if warning, ok := answer["WARNING"].(string); ok {
			err = fmt.Errorf("the plug says: %.100s: set password", warning)
		} else if command, ok := answer["Command"].(string); ok {
			err = fmt.Errorf("the plug says that the command %s is %.60s: which relay has it?", name, command)
		}
	}
	is := false
	for key, value := range answer {
		state, _ := value.(string)
		is = is || strings.HasPrefix(key, "POWER") && state == "ON"
	}
	return errors.Join(err, isSo(err, on, is))
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func isSo(err error, on, is bool) error {
	if err == nil && on != is {
		return fmt.Errorf("the plug says that it is %s after it was switched %s", onOff(is), onOff(on))
	}
	return nil
}

// wake sends magic packets: six bytes of ones, and the hardware address sixteen times.
func (s *Switch) wake(ctx context.Context) error {
	mac, err := net.ParseMAC(s.part.WakeOnLAN)
	if err != nil {
		return err
	}
	packet := append(bytes.Repeat([]byte{0xff}, 6), bytes.Repeat(mac, 16)...)
	d := net.Dialer{Control: allowBroadcast}
	conn, err := d.DialContext(ctx, "udp", s.to.String())
	if err != nil {
		return fmt.Errorf("wake_on_lan: %w", err)
	}
	defer conn.Close()
	for range 3 { // UDP may lose one
		if _, err := conn.Write(packet); err != nil {
			return fmt.Errorf("wake_on_lan: %w", err)
		}
	}
	return nil
}
