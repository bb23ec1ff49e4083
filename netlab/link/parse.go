package link

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a profile's values. They exceed those of every real access network,
// and keep arithmetic on hostile input from overflowing.
const (
	maxDelay = time.Minute
	maxRate  = Rate(1e12)
	minRate  = Rate(100)
	maxSteps = 1000
)

// Parse reads a profile: a name ("lte"), settings ("rtt=150ms,down=1.6mbit"),
// both ("lte,loss=1%"), and changes with their times since the start of the
// trial ("lte; 5s: rtt=400ms; 8s: down=0"). A change keeps what it does not set.
//
// Settings: rtt, jitter (durations); down, up (rates such as 384kbit, 1.6mbit,
// 1gbit; 0 is an outage, "unlimited" no bound); trace, downtrace, uptrace (files
// in mahimahi's format, instead of rates); loss (1% or 0.01); burst (mean
// packets in a run of losses); queue (100p, 64kB, 200ms); aqm (droptail,
// codel); seed; mtu; reorder (yes, no); rtt@HOST (addition for one origin);
// stall (100ms@200ms-1.5s: all packets are held for 100 ms, once, from a moment
// that is drawn between these times for each trial).
//
// Parse opens no files: a profile with a trace is an error. See Reader.
func Parse(s string) (Profile, error) { return Reader{}.Parse(s) }

// Reader parses profiles that may name trace files. Give it no profile that came
// over a network: such a profile must not choose which files are opened.
type Reader struct {
	// Open opens a trace file; when it is nil, trace files are an error.
	Open func(name string) (io.ReadCloser, error)
}

// OpenFile opens files of this machine, for Reader.Open.
func OpenFile(name string) (io.ReadCloser, error) { return os.Open(name) }

// Parse does what the function Parse does, with trace files.
func (r Reader) Parse(s string) (Profile, error) {
	return (&reading{open: r.Open, traces: map[string]*Trace{}, said: map[string]bool{}}).parse(s)
}

// reading is one call of Parse, which reads each trace file once.
type reading struct {
	open   func(string) (io.ReadCloser, error)
	traces map[string]*Trace
	said   map[string]bool // the settings so far, of whatever step
}

func (r *reading) trace(name string) (*Trace, error) {
	if t := r.traces[name]; t != nil {
		return t, nil
	}
	if r.open == nil {
		return nil, errors.New("trace files can be named on the command line only")
	}
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := ReadTrace(name, f)
	r.traces[name] = t
	return t, err
}

func (r *reading) parse(s string) (Profile, error) {
	steps := strings.Split(s, ";")
	if len(steps) > maxSteps {
		return Profile{}, fmt.Errorf("link %.40q…: %d changes are more than %d", s, len(steps), maxSteps)
	}
	p, err := r.step(Profile{Name: "native"}, steps[0])
	if err != nil {
		return Profile{}, fmt.Errorf("link %q: %w", s, err)
	}
	base, last := p, time.Duration(0)
	for _, step := range steps[1:] {
		if strings.TrimSpace(step) == "" {
			continue
		}
		when, what, ok := strings.Cut(step, ":")
		if !ok {
			return Profile{}, fmt.Errorf("link %q: change %q has no time, write it as \"5s: rtt=400ms\"", s, strings.TrimSpace(step))
		}
		at, err := duration(strings.TrimSpace(when), 24*time.Hour)
		if err != nil {
			return Profile{}, fmt.Errorf("link %q: change %q: %w", s, strings.TrimSpace(step), err)
		}
		if at < last {
			return Profile{}, fmt.Errorf("link %q: the change at %v follows one at %v; changes must be in order of time", s, at, last)
		}
		last = at
		if base, err = r.step(base.Clone(), what); err != nil {
			return Profile{}, fmt.Errorf("link %q: change at %v: %w", s, at, err)
		}
		p.Changes = append(p.Changes, Change{At: at, Profile: base})
	}
	if err := r.checkIdle(p); err != nil {
		return Profile{}, fmt.Errorf("link %q: %w", s, err)
	}
	return p, nil
}

// checkIdle returns the error of a setting that does nothing without another one, which neither the profile nor a change
// of it has.
func (r *reading) checkIdle(p Profile) error {
	all := []Profile{p}
	for _, c := range p.Changes {
		all = append(all, c.Profile)
	}
	some := func(has func(Profile) bool) bool { return slices.ContainsFunc(all, has) }
	holds := some(func(p Profile) bool {
		return p.Down != Unlimited || p.Up != Unlimited || p.DownTrace != nil || p.UpTrace != nil || p.Stall != nil
	})
	switch {
	case r.said["burst"] && !r.said["loss"]:
		return errors.New("burst alone loses nothing: say how much is lost, as in loss=1%,burst=4")
	case some(func(p Profile) bool { return p.Reorder }) && !r.said["jitter"]:
		return errors.New("reorder alone changes no order: say how late packets may be, as in jitter=5ms,reorder=yes")
	case r.said["queue"] && !holds:
		return errors.New("queue alone holds nothing, as the link is unlimited: give a rate, as in down=5mbit,queue=100p")
	case r.said["aqm"] && !holds:
		return errors.New("aqm alone drops nothing, as the link is unlimited: give a rate, as in down=5mbit,aqm=codel")
	}
	return nil
}

func (r *reading) step(p Profile, s string) (Profile, error) {
	known := map[string]bool{}
	for i, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		key, value, isSetting := strings.Cut(part, "=")
		if !isSetting {
			if i > 0 || part == "" {
				return p, fmt.Errorf(
					"%q is not a setting; settings look like rtt=150ms, names (%s) come first",
					part,
					strings.Join(Names(), ", "),
				)
			}
			q, err := byName(part)
			if err != nil {
				return p, err
			}
			q.Seed = p.Seed
			p = q
			continue
		}
		if i == 0 && p.Name == "native" {
			p.Name = "custom"
		}
		key = strings.ToLower(strings.TrimSpace(key))
		if known[key] {
			return p, fmt.Errorf("%s: %s is set twice", part, key)
		}
		known[key], r.said[key] = true, true
		if err := r.set(&p, key, strings.TrimSpace(value)); err != nil {
			return p, fmt.Errorf("%s: %w", part, err)
		}
	}
	return p, nil
}

func byName(name string) (Profile, error) {
	for _, n := range profiles() {
		if n.name == strings.ToLower(name) {
			return Profile{Name: n.name, RTT: n.rtt, Down: n.down, Up: n.up}, nil
		}
	}
	return Profile{}, fmt.Errorf("no profile is called %q; known are %s, or give settings such as rtt=150ms,down=1.6mbit,up=768kbit",
		name, strings.Join(Names(), ", "))
}

func (r *reading) set(p *Profile, key, value string) (err error) {
	if host, ok := strings.CutPrefix(key, "rtt@"); ok {
		if host, err = hostOf(host); err != nil {
			return err
		}
		d, err := duration(strings.TrimPrefix(value, "+"), maxDelay)
		if err != nil {
			return err
		}
		if p.Extra == nil {
			p.Extra = map[string]time.Duration{}
		}
		p.Extra[host] = d
		return nil
	}
	switch key {
	case "rtt":
		p.RTT, err = duration(value, maxDelay)
	case "jitter":
		p.Jitter, err = duration(value, maxDelay)
	case "down":
		p.Down, err = rate(value)
		p.DownTrace = nil
	case "up":
		p.Up, err = rate(value)
		p.UpTrace = nil
	case "trace", "downtrace", "uptrace":
		t, err := r.trace(value)
		if err != nil {
			return err
		}
		if key != "uptrace" {
			p.DownTrace, p.Down = t, Unlimited
		}
		if key != "downtrace" {
			p.UpTrace, p.Up = t, Unlimited
		}
	case "loss":
		p.Loss, err = share(value)
	case "burst":
		p.Burst, err = strconv.ParseFloat(value, 64)
		if err != nil || !(p.Burst >= 1 && p.Burst <= 1e6) {
			err = fmt.Errorf("%q is not a number of packets from 1", value)
		}
	case "queue":
		err = p.Queue.set(value)
	case "aqm":
		switch Discipline(value) {
		case DropTail, CoDel:
			p.Queue.Discipline = Discipline(value)
		default:
			err = fmt.Errorf("%q is not one of %s, %s", value, DropTail, CoDel)
		}
	case "seed":
		if p.Seed, err = strconv.ParseUint(value, 0, 64); err != nil {
			err = fmt.Errorf("%q is not a whole number from 0", value)
		} else if len(value) > 1 && value[0] == '0' && value[1] >= '0' && value[1] <= '9' {
			err = fmt.Errorf("%q is another number to some readers, because of the 0 before it: leave that out", value)
		}
	case "mtu":
		if p.MTU, err = strconv.Atoi(value); err != nil || p.MTU < 576 || p.MTU > 9000 {
			err = fmt.Errorf("%q is not a number of bytes from 576 to 9000", value)
		}
	case "reorder":
		if p.Reorder = value == "yes"; !p.Reorder && value != "no" {
			err = fmt.Errorf("%q is not yes or no", value)
		}
	case "stall":
		p.Stall, err = parseStall(value)
	default:
		err = fmt.Errorf("no setting is called %q; known are rtt, rtt@HOST, jitter, reorder, down, up, "+
			"trace, downtrace, uptrace, queue, aqm, loss, burst, seed, mtu, stall", key)
	}
	return err
}

// hostOf checks the host of a setting and returns it as the name server and netip write it.
func hostOf(s string) (string, error) {
	host := strings.TrimSuffix(strings.ToLower(s), ".")
	if host == "" {
		return "", errors.New("rtt@ needs a host, as in rtt@api.example=80ms")
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.String(), nil
	}
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "", fmt.Errorf("%q is no host: write a name or an address alone, as in rtt@api.example=80ms, and other letters as xn--", s)
	}
	return host, nil
}

func (q *Queue) set(value string) error {
	bad := fmt.Errorf("%q is not a queue such as 100p (packets), 64kB, 2MB (bytes) or 200ms (at the link's rate)", value)
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"p", 0}, {"B", 1}} {
		number, ok := strings.CutSuffix(value, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !(n >= 1 && n <= 1e9) {
			return bad
		}
		if u.factor == 0 {
			if n != math.Trunc(n) {
				return bad
			}
			q.Packets = int(n)
		} else {
			q.Bytes = int(min(n*u.factor, 1e10))
		}
		return nil
	}
	d, err := duration(value, maxDelay)
	if err != nil || d == 0 {
		return bad
	}
	q.Time = d
	return nil
}

func duration(s string, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", "")) // 150 ms
	if err != nil || d < 0 || d > most {
		return 0, fmt.Errorf("%q is not a duration from 0 to %v, such as 150ms or 1.5s", s, most)
	}
	return d, nil
}

func rate(s string) (Rate, error) {
	t := strings.ToLower(s)
	if t == "unlimited" {
		return Unlimited, nil
	}
	if strings.HasSuffix(s, "Bps") || strings.HasSuffix(s, "B/s") {
		return 0, fmt.Errorf("%q counts bytes, and a rate counts bits: write eight times as many kbit, mbit or gbit", s)
	}
	if before, ok := strings.CutSuffix(t, "bit/s"); ok {
		t = before + "bit"
	}
	factor, hasUnit := 1.0, false
	for _, u := range []struct {
		suffix string
		factor float64
	}{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}, {"gbps", 1e9}, {"mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}} {
		if number, ok := strings.CutSuffix(t, u.suffix); ok {
			t, factor, hasUnit = strings.TrimSpace(number), u.factor, true
			break
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	switch v := Rate(math.Round(n * factor)); {
	case err != nil || math.IsNaN(n) || n < 0:
	case n == 0:
		return Blocked, nil
	case !hasUnit:
		return 0, fmt.Errorf("%q has no unit; write kbit, mbit or gbit", s)
	case v >= minRate && v <= maxRate && n*factor <= float64(maxRate):
		return v, nil
	}
	return 0, fmt.Errorf("%q is not a rate from 100bit to 1000gbit, 0 (an outage) or unlimited", s)
}

func share(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a share such as 1%% or 0.01", s)
	}
	if v == 1 && !percent { // tc-netem takes it for 1%
		return 0, fmt.Errorf("%q may mean 1%% or 100%%: write one of them", s)
	}
	return v, nil
}
