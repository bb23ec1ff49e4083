package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// group is a table of names and values.
type group struct {
	Name string
	Rows []pair
}

type pair struct{ Name, Value string }

// rows is a list of names and values without the pairs whose value is empty.
type rows []pair

func (r *rows) add(name, value string) {
	if value != "" {
		*r = append(*r, pair{name, value})
	}
}

func groupsOf(run *lab.Run) []group {
	var out []group
	for _, g := range []group{
		{linkTitle(run), linkRows(run.Link)},
		{"Environment", environmentRows(run.Environment)},
		{"Plan", planRows(run.Plan)},
		{"Archive", archiveRows(run.Archive)},
		{"Fetched for what the recording lacks", filledRows(run)},
	} {
		if len(g.Rows) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// rawOf is the record behind the tables as JSON, for readers who look for a field.
func rawOf(run *lab.Run) string {
	text, err := json.MarshalIndent(struct {
		Link        lab.Link        `json:"link"`
		Environment lab.Environment `json:"environment"`
		Plan        lab.Plan        `json:"plan"`
	}{run.Link, run.Environment, run.Plan}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// linkTitle names the table of run.Link, which is the control's.
func linkTitle(run *lab.Run) string {
	if both(run) {
		return "Link of the control"
	}
	return "Link"
}

func archiveRows(a lab.ArchiveInfo) (r rows) {
	if a.File == "" && a.Exchanges == 0 {
		return nil
	}
	r.add("File", a.File)
	r.add("SHA-256", a.SHA256)
	r.add("Exchanges", count(a.Exchanges))
	r.add("File size", size(a.Bytes))
	r.add("Body bytes", size(a.BodyBytes))
	r.add("Hosts", strings.Join(a.Hosts, ", "))
	r.add("Protocols", strings.Join(a.Protocols, ", "))
	return r
}

// filledRows describes the archive of what the recording lacked.
func filledRows(run *lab.Run) rows {
	if run.Filled == nil {
		return nil
	}
	return archiveRows(*run.Filled)
}

// planRows describes the plan.
func planRows(p lab.Plan) (r rows) {
	if p.Trials == 0 { // a run without a plan
		return nil
	}
	arms := p.Arms()
	control := arms[0]
	r.add("Page", control.Page)
	r.add("Link", control.Link)
	r.add("Recording", recordingOf(p, control))
	for _, t := range arms[1:] {
		if t.Page != control.Page {
			r.add("Page of the treatment", t.Page)
		}
		if t.Link != control.Link {
			r.add("Link of the treatment", t.Link)
		}
		if t.Archive != control.Archive {
			r.add("Recording of the treatment", recordingOf(p, t))
		}
	}
	for _, a := range arms {
		if a.Match == "" || a.Name != lab.Control && a.Match == control.Match {
			continue // a run from before there were policies, or of no recording, or nothing new
		}
		name := "A request matches"
		if a.Name != lab.Control {
			name += ", treatment"
		}
		r.add(name, map[string]string{
			"strict": "only if method, URL and body are the recorded ones (strict)", "normal": "if nothing differs that can change the answer (normal)",
			"loose": "if it is similar enough (loose)",
		}[a.Match])
	}
	if p.Miss == lab.MissFill {
		r.add("What the recording lacks", "fetched from its origin once, the same for all trials (fill)")
	}
	trials := count(p.Trials)
	if len(arms) > 1 {
		trials += " of each arm"
	}
	r.add("Trials", trials)
	if !p.Live {
		r.add(
			"Answers come",
			map[string]string{lab.TimingRecorded: "when they came in the recording", "none": "at once",
				lab.TimingShared: "when they came in the recordings, and of what both arms ask for at the mean of both"}[cmp.Or(p.Timing, lab.TimingRecorded)],
		)
		if fixed, ok := strings.CutPrefix(p.Timing, "fixed:"); ok {
			r.add("Answers come", "after "+fixed)
		}
	}
	r.add("A load has ended after", spell(p.Still)+" of stillness")
	r.add("A load may take", spell(p.Limit))
	r.add("Tolerance", "one frame, more where the machine cannot keep it")
	if p.Tolerance != 0 {
		r[len(r)-1].Value = lab.Millis(p.Tolerance)
	}
	r.add("Seed", strconv.FormatUint(p.Seed, 10))
	r.add("Device", p.Device)
	return r
}

// recordingOf describes what an arm replays.
func recordingOf(p lab.Plan, a lab.NamedArm) string {
	switch {
	case p.Live:
		return "none: each load came from the origins"
	case a.Archive == "":
		return "made for this run"
	}
	return path.Base(a.Archive)
}

// spell formats a number of seconds.
func spell(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + " s" }

// environmentRows describes the machine, the network and the device.
func environmentRows(e lab.Environment) (r rows) {
	r.add("Appliance", e.Appliance)
	r.add("Browser", e.Browser)
	r.add("Sandbox", e.Sandbox)
	r.add("Counters", e.Counters)
	r.add("Energy", e.Energy)
	r.add("Screen", e.Screen)
	r.add("Operating system", e.OS)
	r.add("Kernel", e.Kernel)
	r.add("Processor", e.Processor)
	r.add("Cores", nonzero(e.Cores))
	if e.MemoryBytes > 0 {
		r.add("Memory", size(e.MemoryBytes))
	}
	r.add("Load average at the start", e.LoadAverage)
	r.add("Frequency governor", e.Governor)
	r.add("Processors kept awake", yesNo(e.KeptAwake))
	r.add("Idle driver", e.IdleDriver)
	r.add("Two threads share a core (SMT)", onOff(e.SMT, "yes", "no"))
	r.add("Turbo", onOff(e.NoTurbo, "off", "on"))
	r.add("Huge pages", e.HugePages)
	if e.Realtime != nil {
		r.add("Real-time priority of the link", map[bool]string{true: "not permitted",
			false: "up to " + strconv.Itoa(*e.Realtime)}[*e.Realtime == 0])
	}
	r.add("Root", yesNo(e.Root))
	if n := e.Network; n != nil {
		r.add("Congestion control", n.CongestionControl)
		r.add("The link's process", strings.Join(n.LinkThread, ", "))
		r.add("The link cannot do", strings.Join(n.LinkLimits, "; "))
		r.add("Packets that left late", nonzero(n.LinkSlips))
		r.add("DNS queries dropped", nonzero(n.DNSDropped))
		for _, name := range slices.Sorted(maps.Keys(n.KernelSettings)) {
			r.add(name, strings.Join(strings.Fields(n.KernelSettings[name]), " "))
		}
	}
	if p := e.Port; p != nil {
		r.add("Port", p.Interface)
		var leases []string
		for _, l := range p.Leases {
			leases = append(leases, strings.TrimSpace(l.Name+" "+l.Address+" ("+l.MAC+")"))
		}
		r.add("Devices at the port", strings.Join(leases, ", "))
		r.add("Times the cable was lost", nonzero(p.Flaps))
		r.add("Problem of the port", p.Problem)
		r.add("The port cannot do", strings.Join(p.Limits, "; "))
	}
	if i := e.Isolation; i != nil {
		r.add("Isolation", i.How)
		r.add("Interfaces of device and box", strings.Join(i.Interfaces, ", "))
		r.add("Packets for somebody outside", optional(i.OutsidePackets))
		r.add("Packets for nobody", optional(i.StrayPackets))
	}
	return r
}

// nonzero formats a counter; "" for 0, which needs no row.
func nonzero[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

func optional(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}

func yesNo(b *bool) string {
	if b == nil {
		return ""
	}
	return map[bool]string{true: "yes", false: "no"}[*b]
}

// onOff reads a switch of the kernel, which is "1" or "0".
func onOff(value, one, zero string) string {
	return map[string]string{"1": one, "0": zero}[value]
}

// captureRows describes the quality of a trial's recording.
func captureRows(c *lab.CaptureState) (r rows) {
	if c == nil {
		return nil
	}
	r.add("Frames per second", precise(c.Rate))
	r.add("Time between frames, 99th percentile", precise(c.IntervalP99)+" ms")
	r.add("Longest time between frames", precise(c.IntervalMax)+" ms")
	r.add("Jitter", precise(c.Jitter)+" ms")
	r.add("Scheduling of the recorder", c.Scheduling)
	r.add("Looks missed, with nothing drawn", nonzero(c.MissedProven))
	r.add("Looks missed, with something drawn", nonzero(c.MissedDrawn))
	r.add("Time of a change is known to", precise(c.NormalBound)+" ms")
	r.add("and at worst to", precise(c.WorstBound)+" ms")
	if c.Noise != nil {
		r.add("Noise of the screen", c.Noise.Floor())
		r.add("Changes that are seen for certain", c.Noise.Sees())
	}
	r.add("Frames whose time does not fit their number", nonzero(c.Irregular))
	for _, b := range c.Blue {
		r.add("One blue, as grabbers show without a signal", fmt.Sprintf("%d frames in %.1f s", b.Frames, b.To.Sub(b.From).Seconds()))
	}
	for _, why := range slices.Sorted(maps.Keys(c.LostBecause)) {
		r.add("Frames lost: "+why, fmt.Sprint(c.LostBecause[why]))
	}
	return r
}
