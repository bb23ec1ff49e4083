package adbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"eidetic/internal/lab"
)

// State is what the phone's commands look at and change.
type State struct {
	Size     string            // as wm prints it
	Settings map[string]string // "system user_rotation": "1"
	Packages []string          // that are installed
	Running  []Process         // of packages
	Done     []string          // commands that changed something, in order
	Flaw     string            // what hid does wrong: "no devices", "silent", "dies"
	Battery  string            // as dumpsys battery prints it
	Thermal  int               // Android's thermal status
	Guarded  bool              // adb may grant nothing, as on a Xiaomi phone at first
	Old      bool              // an Android before 7, which does not know the shell protocol
	Viewport string            // what dumpsys input prints of the screen; "" if the phone prints nothing
	Boots    int               // how often it has started
	Stuck    bool              // it starts and never gets ready
	Hangs    string            // a command that begins so is never answered; a start ends that
}

// Process is a process of a package, with its processor time in hundredths of a second.
type Process struct {
	PID    int
	Name   string
	Ticks  int
	Unread string // why its files cannot be read: it has ended since ps saw it, for instance
}

// battery is what a phone on a cable says, as Android 14 prints it.
const battery = `Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Dock powered: false
  Max charging current: 500000
  status: 2
  health: 2
  present: true
  level: 84
  scale: 100
  voltage: 4063
  temperature: 326
  technology: Li-ion
`

func newState() State {
	return State{
		Size: "Physical size: 1080x2400\n", Packages: []string{"com.android.chrome", "org.mozilla.firefox"}, Battery: battery, Boots: 1,
		Settings: map[string]string{"system screen_brightness": "102", "system screen_brightness_mode": "0"},
	}
}

// State returns a copy of what the commands have done so far.
func (p *Phone) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.props
	s.Done = slices.Clone(s.Done)
	return s
}

// Change changes the state.
func (p *Phone) Change(f func(*State)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.props)
	p.list()
}

// run carries out a command and sends its exit status.
func (p *Phone) run(ctx context.Context, s *shellStream, command string) {
	status := byte(0)
	hangs := p.State().Hangs
	switch {
	case hangs != "" && strings.HasPrefix(command, hangs):
		<-ctx.Done()
		return
	case command == "hid -":
		p.hid(s)
	case command == "getevent -t":
		p.getevent(ctx, s)
	case strings.Contains(command, "app_process"):
		status = p.java(ctx, s, command)
	case strings.HasPrefix(command, "kill "):
		p.kill(command)
	case strings.HasPrefix(command, "while read "):
		status = p.shell(ctx, s, command)
	default:
		before := len(p.State().Done)
		out, code := p.command(command)
		status = code
		p.mu.Lock()
		done := p.done
		p.mu.Unlock()
		if done != nil && len(p.State().Done) > before {
			done(command)
		}
		if _, err := io.WriteString(s, out); out != "" && err != nil {
			return
		}
	}
	_ = s.frame(3, []byte{status})
}

// command is one that prints something and ends.
func (p *Phone) command(command string) (out string, status byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	words := strings.Fields(command)
	installed := func(name string) bool { return slices.Contains(p.props.Packages, name) }
	switch {
	case strings.HasPrefix(command, "cat /proc/sys/kernel/random/boot_id"):
		return fmt.Sprintf("boot-%d\n%d\n", p.props.Boots, map[bool]int{false: 1}[p.props.Stuck]), 0
	case strings.HasPrefix(command, "dumpsys battery"):
		const mark = "eidetic-next\n"
		return fmt.Sprintf("%s%sIsStatusOverride: false\nThermal Status: %d\n%s%s\n%s\n%sDisplay Devices: size=1\n  mActiveSfDisplayMode=DisplayMode"+
			"{id=0, width=1080, height=2400, refreshRate=120.00001}\n  renderFrameRate 60.000004\n", p.props.Battery, mark, p.props.Thermal, mark,
			p.props.Settings["system screen_brightness"], p.props.Settings["system screen_brightness_mode"], mark), 0
	case strings.HasPrefix(command, "dumpsys input |") && p.props.Viewport != "":
		return p.props.Viewport, 0
	case strings.HasPrefix(command, "pm grant") && p.props.Guarded:
		return "\nException occurred while executing 'grant':\njava.lang.SecurityException: grantRuntimePermission: Neither user 2000 nor " +
			"current process has android.permission.GRANT_RUNTIME_PERMISSIONS.\n", 255
	case strings.HasPrefix(command, "pm clear"), strings.HasPrefix(command, "pm grant"):
		if !installed(words[2]) {
			return "Failed\n", 0
		}
		p.props.Done = append(p.props.Done, command)
		return "Success\n", 0
	case strings.HasPrefix(command, "rm -f "):
		delete(p.files, strings.Trim(words[2], "'"))
		p.props.Done = append(p.props.Done, command)
	case strings.HasPrefix(command, "printf "), strings.HasPrefix(command, "input keyevent"):
		p.props.Done = append(p.props.Done, command)
	case command == "wm size":
		return p.props.Size, 0
	case strings.HasPrefix(command, "settings get"):
		if v, ok := p.props.Settings[words[2]+" "+words[3]]; ok {
			return v + "\n", 0
		}
		return "null\n", 0
	case strings.HasPrefix(command, "am force-stop"):
		p.props.Done = append(p.props.Done, command)
	case strings.HasPrefix(command, "cmd package resolve-activity"):
		if name := words[len(words)-1]; installed(name) {
			return "priority=0 preferredOrder=0 match=0x108000 specificIndex=-1 isDefault=true\n" + name + "/.Main\n", 0
		}
		return "No activity found\n", 0
	case strings.HasPrefix(command, "am start -n"):
		if name, _, _ := strings.Cut(strings.Trim(words[3], "'"), "/"); !installed(name) {
			return "Error type 3\nError: Activity class {" + words[3] + "} does not exist.\n", 0
		}
		p.props.Done = append(p.props.Done, command)
		return "Starting: Intent { cmp=" + words[3] + " }\n", 0
	case strings.HasPrefix(command, "ps -A"):
		return p.listing(), 0
	case strings.HasPrefix(command, "cat /proc/"):
		return p.stats(command)
	case strings.HasPrefix(command, "dumpsys meminfo"):
		for _, one := range p.props.Running {
			out += fmt.Sprintf("** MEMINFO in pid %d [%s] **\n           TOTAL PSS:    50000            TOTAL RSS:   120000       TOTAL SWAP PSS:      100\n",
				one.PID, one.Name)
		}
		return out, 0
	case strings.HasPrefix(command, "am start"):
		_, in, _ := strings.Cut(command, " -p ")
		if name, _, _ := strings.Cut(in, " "); in != "" && !installed(name) {
			return "Error: Activity not started, unable to resolve Intent\n", 0
		}
		p.props.Done = append(p.props.Done, command)
		return "Starting: Intent { }\n", 0
	default:
		return "/system/bin/sh: " + words[0] + ": inaccessible or not found\n", 127
	}
	return "", 0
}

// stats are the files that cat is to print. Without "2>&1" what it says of those that are missing is not seen.
func (p *Phone) stats(command string) (out string, status byte) {
	files, rest, _ := strings.Cut(strings.TrimPrefix(command, "cat "), " 2>&1")
	for file := range strings.FieldsSeq(files) {
		i := slices.IndexFunc(p.props.Running, func(one Process) bool { return file == fmt.Sprintf("/proc/%d/stat", one.PID) })
		if i < 0 || p.props.Running[i].Unread != "" {
			why := "No such file or directory"
			if i >= 0 {
				why = p.props.Running[i].Unread
			}
			out, status = out+"cat: "+file+": "+why+"\n", 1
			continue
		}
		one := p.props.Running[i]
		out += fmt.Sprintf("%d (%.15s) S 300 300 0 0 -1 1077952832 9 0 0 0 %d 2 0 0 10 -10 40 0 555 1 2\n", one.PID, one.Name, one.Ticks-2)
	}
	if strings.HasSuffix(rest, "; true") {
		status = 0
	}
	return out, status
}

// nodes are the input devices, and who listens to their events.
type nodes struct {
	mu        sync.Mutex
	names     []string   // /dev/input/event0 …
	reports   []string   // that came, as "NAME: BYTES"
	stamps    []lab.Time // when those came that changed something, on this machine's clock
	listeners map[*shellStream]chan string
	last      map[string][]byte
	sink      func(name string, descriptor, report []byte)
}

func newNodes() *nodes {
	return &nodes{names: []string{"gpio-keys"}, listeners: map[*shellStream]chan string{}, last: map[string][]byte{}}
}

func (n *nodes) say(line string) {
	for _, ch := range n.listeners {
		select {
		case ch <- line:
		default:
		}
	}
}

// Reports are what hid got, as "NAME: BYTES".
func (p *Phone) Reports() []string {
	p.nodes.mu.Lock()
	defer p.nodes.mu.Unlock()
	return slices.Clone(p.nodes.reports)
}

// Stamps are when reports came that changed something, on this machine's clock.
func (p *Phone) Stamps() []lab.Time {
	p.nodes.mu.Lock()
	defer p.nodes.mu.Unlock()
	return slices.Clone(p.nodes.stamps)
}

// OnReport calls f with every report and, with a nil report, for every device that is made.
func (p *Phone) OnReport(f func(name string, descriptor, report []byte)) {
	p.nodes.mu.Lock()
	defer p.nodes.mu.Unlock()
	p.nodes.sink = f
}

func bytesOf(ints []int) []byte {
	b := make([]byte, len(ints))
	for i, v := range ints {
		b[i] = byte(v)
	}
	return b
}

// hid is Android's command: JSON objects that make devices and send their reports.
func (p *Phone) hid(s *shellStream) {
	type device struct {
		name, node string
		descriptor []byte
	}
	made := map[int]device{}
	defer func() { // the kernel takes the devices away with their owner
		p.nodes.mu.Lock()
		defer p.nodes.mu.Unlock()
		for _, d := range made {
			for i := range p.nodes.names {
				if d.node == fmt.Sprintf("/dev/input/event%d", i) {
					p.nodes.names[i] = ""
					p.nodes.say(fmt.Sprintf("remove device %d: %s", i+1, d.node))
				}
			}
		}
	}()
	decoder := json.NewDecoder(s.stdin)
	for {
		var m struct {
			ID         int
			Command    string
			Name       string
			Descriptor []int
			Report     []int
		}
		if decoder.Decode(&m) != nil {
			return
		}
		flaw := p.State().Flaw
		n := p.nodes
		n.mu.Lock()
		switch {
		case m.Command == "register" && flaw == "no devices":
		case m.Command == "register":
			d := device{m.Name, fmt.Sprintf("/dev/input/event%d", len(n.names)), bytesOf(m.Descriptor)}
			made[m.ID] = d
			n.names = append(n.names, d.name)
			n.say(fmt.Sprintf("add device %d: %s\n  name:     %q", len(n.names), d.node, d.name))
			if n.sink != nil {
				n.sink(d.name, d.descriptor, nil)
			}
		case m.Command == "report" && flaw == "dies":
			n.mu.Unlock()
			s.link.conn.Close()
			return
		case m.Command == "report":
			d, report := made[m.ID], bytesOf(m.Report)
			n.reports = append(n.reports, fmt.Sprintf("%s: % x", d.name, report))
			if n.sink != nil {
				n.sink(d.name, d.descriptor, report)
			}
			if string(n.last[d.node]) != string(report) && flaw != "silent" {
				n.last[d.node] = report
				now := lab.Monotonic()
				n.stamps = append(n.stamps, now)
				at := phoneClock(now)
				n.say(fmt.Sprintf("[%8d.%06d] %s: 0004 0004 00070004\n[%8d.%06d] %s: 0000 0000 00000000",
					at/1e6, at%1e6, d.node, at/1e6, at%1e6, d.node))
			}
		}
		n.mu.Unlock()
	}
}

// Ahead is by how much the phone's clock is ahead of this machine's.
const Ahead = lab.Time(5_000_000_000_000)

// phoneClock is the phone's monotonic clock in microseconds.
func phoneClock(now lab.Time) int64 { return int64((now + Ahead) / 1000) }

// getevent lists the devices and then prints events.
func (p *Phone) getevent(ctx context.Context, s *shellStream) {
	lines := make(chan string, 1024)
	p.nodes.mu.Lock()
	text := ""
	for i, name := range p.nodes.names {
		if name == "" { // it was removed
			continue
		}
		text += fmt.Sprintf("add device %d: /dev/input/event%d\n  name:     %q\n", i+1, i, name)
	}
	p.nodes.listeners[s] = lines
	p.nodes.mu.Unlock()
	defer func() {
		p.nodes.mu.Lock()
		defer p.nodes.mu.Unlock()
		delete(p.nodes.listeners, s)
	}()
	if _, err := io.WriteString(s, text); err != nil {
		return
	}
	for {
		select {
		case line := <-lines:
			if _, err := io.WriteString(s, line+"\n"); err != nil {
				return
			}
		case <-s.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Keys are the states of the keyboard that hid got, as modifiers and the first key.
func (p *Phone) Keys() (list []string) {
	for _, r := range p.Reports() {
		var modifiers, key byte
		if _, err := fmt.Sscanf(r, "Eidetic keyboard: %x 00 %x", &modifiers, &key); err == nil {
			list = append(list, fmt.Sprintf("%02x %02x", modifiers, key))
		}
	}
	return list
}
