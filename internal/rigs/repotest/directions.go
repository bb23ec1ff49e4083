package repotest

// module is the name in go.mod.
const module = "eidetic/"

// direction lists our own packages that a part of the tree may import, besides its own
// sub-packages. Tests may import internal/rigs/testlab as well.
type direction struct {
	from string   // a folder with all that is below it
	may  []string // folders, each with all that is below it
	why  string
}

// directions is the picture in docs/design.md as a table. The most specific
// line applies.
func directions() []direction {
	const instrument = "instruments know nothing of each other, of experiments or of the panel, so that each can be tested, replaced and used alone"
	lab := []string{"internal/lab", "internal/metric"}
	return []direction{
		{"internal/lab", nil, "the shared words are imported by all, so they import none"},
		{"docs", nil, "the documents are texts in the binary; who shows them decides how"},
		{"internal/metric", []string{"internal/lab"}, "the registry of metrics is read by whoever measures, tells or judges, so it imports none of them"},
		{"netlab", append([]string{"internal/base/priority", "internal/base/atomicfile", "internal/base/slots", "internal/base/unshare"}, lab...), instrument},
		{"netlab/hop", lab, "listeners, core and transport all import what they tell each other of a request, so it imports none of them"},
		{
			"netlab/replay",
			append([]string{"netlab/archive", "netlab/hop", "netlab/inject", "netlab/message"}, lab...),
			"the core answers requests and knows no listener; how a head is read it has from the one reading of heads",
		},
		{
			"netlab/replay/match",
			append([]string{"netlab/inject"}, lab...),
			"matching is a function of the recording and the requests alone",
		},
		{"netlab/replay/bench", append([]string{"netlab"}, lab...), "a benchmark puts the core behind the product's own listeners"},
		{
			"netlab/replay/conformance",
			append([]string{"netlab", "internal/rigs/samplesite"}, lab...),
			"conformance is tried with real browsers, through the product's own listeners; the sample site is what their own HARs are of",
		},
		{"capture", append([]string{"internal/base/adbserver", "internal/base/scrcpyserver", "internal/base/programs", "internal/base/rfb", "internal/base/priority", "internal/base/atomicfile"}, lab...), instrument},
		{"control", append([]string{"internal/base/adbserver", "internal/base/scrcpyserver", "internal/base/rfb", "internal/base/priority"}, lab...), instrument},
		{"analysis", lab, instrument},
		{"analysis/bench", append([]string{"analysis", "capture/reel"}, lab...), "a benchmark measures frames as they come from reels"},
		{"systemd", nil, "talking to the service manager concerns no other part"},
		{
			"image",
			[]string{"internal/lab", "internal/base/atomicfile", "internal/keep/pin", "systemd"},
			"the image is built from the finished binary and its units; its console shows the panel's fingerprint",
		},
		{
			"image/boottest",
			[]string{"image", "internal/rigs/storytest", "internal/rigs/samplesite", "internal/rigs/usbgrabber", "netlab/netspace",
				"capture/x11", "control/power/powertest", "internal/lab"},
			"the booted image is told the same story as the service on any machine, over cables that end in namespaces; one is of a screen, one of power",
		},
		{
			"internal/run/experiment",
			lab,
			"the procedure of a trial declares the interfaces that it needs; internal/run/execute passes the instruments in",
		},
		{
			"internal/run/device",
			append([]string{"internal/run/counters", "internal/run/isolate", "internal/base/adbserver", "internal/base/priority",
				"internal/base/programs", "netlab", "capture", "control"}, lab...),
			"a device is assembled from instruments and knows no experiment",
		},
		{
			"internal/plan",
			append([]string{"analysis", "capture", "control", "netlab", "internal/base/bounded", "internal/base/scrcpyserver"}, lab...),
			"a plan is read by the readers of the instruments that its fields are for; who asks for it and who carries it out, it does not know",
		},
		{
			"internal/box/bisection",
			append([]string{"analysis", "internal/base/atomicfile", "internal/plan"}, lab...),
			"a bisect asks for trials through an interface; whether a box or this machine makes them, it does not know",
		},
		{
			"internal/box/bisects",
			append([]string{"analysis", "capture/reel", "internal/base/atomicfile", "internal/box/bisection", "internal/box/ownruns", "internal/plan", "internal/run/experiment", "internal/keep/runqueue", "internal/keep/store", "internal/box/webhook", "netlab/reach"}, lab...),
			"a box's own bisects ask the queue for runs and a hook for revisions, and read films of runs; the search is that of internal/box/bisection",
		},
		{
			"internal/box/ownruns",
			append([]string{"internal/keep/runqueue", "internal/keep/store"}, lab...),
			"what measures over many runs asks the queue for them by itself; what it makes of them, it does not know",
		},
		{
			"internal/box/suites",
			append([]string{"internal/base/atomicfile", "internal/box/ownruns", "internal/keep/runqueue", "internal/keep/store", "internal/plan", "internal/run/execute", "internal/tell/suite"}, lab...),
			"a suite is measured by runs that are asked for through an interface, of this machine or of the queue; their reels are measured again as those of any run",
		},
		{
			"internal/box/bisection/bench",
			append([]string{"internal/box/bisection", "internal/rigs/benchrig", "internal/rigs/truth", "netlab/archive"}, lab...),
			"a benchmark hides a real delay in a real recording",
		},
		{
			"internal/tell/suite",
			append([]string{"analysis/stats", "internal/base/atomicfile", "internal/base/bounded", "internal/keep/store", "internal/plan"}, lab...),
			"a suite's result is told from what was kept of its runs; it carries nothing out",
		},
		{
			"internal/tell/terminal",
			append([]string{"analysis/stats", "internal/run/experiment", "internal/tell/compare", "internal/tell/report", "internal/tell/suite"}, lab...),
			"what was found is printed as it is; steps of a run are shown as the run tells them",
		},
		{"internal/tell/series", append([]string{"analysis"}, lab...), "a series comes from anybody's file and concerns no run"},
		{
			"internal/run/journey",
			append([]string{"analysis", "control", "internal/run/experiment"}, lab...),
			"a journey is played where pictures tell a controller what to do; whose device it is, it does not know",
		},
		{
			"internal/run/seat",
			append([]string{"analysis/visual", "capture", "control", "internal/run/drive", "internal/run/execute", "internal/rigs/testlab"}, lab...),
			"people see and drive a device between runs, by the instruments that a run uses; it knows nothing of the panel",
		},
		{
			"internal/run/errand",
			append([]string{"capture", "internal/run/seat", "internal/run/device", "internal/run/execute", "internal/run/experiment",
				"internal/keep/store", "internal/tell/report", "netlab", "internal/rigs/testlab"}, lab...),
			"what a person asks of a device between runs is done by the instruments that a run uses, and kept as a run is; it knows nothing of the panel",
		},
		{
			"internal/run/drive",
			append([]string{"analysis", "capture", "control"}, lab...),
			"steps are carried out for a person by the instruments alone; there is no trial, and nothing is kept",
		},
		{
			"internal/run/execute",
			append(
				[]string{
					"internal/base/adbserver",
					"internal/base/atomicfile",
					"internal/plan",
					"internal/run/journey",
					"internal/tell/timeline", // from whose files causes are told when a run ends
					"netlab", "capture", "control", "analysis",
					"internal/run/counters", "internal/run/device", "internal/run/experiment", "internal/run/inspect",
					"internal/run/isolate", // which says how a run's memory is bounded
					"internal/run/meter",
					"internal/tell/verdict",
					"internal/keep/store",
					"internal/tell/report",
					"internal/base/rfb/rfbtest",
				},
				lab...),
			"a plan is carried out where the instruments meet the procedure; whether a command or the panel asks for it is not known there; its tests make a screen fall silent",
		},
		{
			"internal/run/sandbox",
			append(
				[]string{"netlab", "internal/plan", "internal/run/device", "internal/run/experiment", "internal/run/inspect", "internal/run/isolate", "internal/run/execute", "internal/run/frequency", "internal/rigs/samplesite"},
				lab...),
			"the namespaced half of a run wires a virtual device; which command or service asks for it, it does not know",
		},
		{
			"internal/box/service",
			append(
				[]string{
					"netlab",
					"image",
					"systemd",
					"internal/base/adbserver", "internal/base/scrcpyserver",
					"control/controltest",
					"analysis/stats",
					"internal/base/atomicfile",
					"internal/base/slots",
					"internal/box/automation",
					"internal/keep/backup",
					"internal/box/bisects",
					"internal/box/suites",
					"internal/box/ownruns",
					"internal/box/mail",
					"internal/box/credentials",
					"internal/fleet",
					"internal/base/programs",
					"internal/keep/redact",
					"internal/keep/retention",
					"internal/keep/support",
					"internal/plan",
					"internal/base/bounded",
					"internal/run/device",
					"internal/box/doctor",
					"internal/run/seat",
					"internal/run/errand",
					"internal/run/experiment",
					"internal/run/execute",
					"internal/run/frequency",
					"internal/run/inspect",
					"internal/web/panel",
					"internal/keep/pin",
					"internal/tell/report",
					"internal/keep/runqueue",
					"internal/run/sandbox",
					"internal/keep/store",
					"internal/box/webhook",
					"internal/tell/suite",
					"internal/tell/verdict",
				},
				lab...),
			"the service wires the box's running parts; cmd/appliance only starts it; its tests look at a device as a person does",
		},
		{
			"internal/keep/runqueue",
			append([]string{"internal/keep/store"}, lab...),
			"the queue carries out what a Runner is, and knows neither HTTP nor devices",
		},
		{
			"cmd/appliance/client",
			[]string{
				"internal/box/automation", "internal/box/credentials", "internal/box/suites", "internal/lab", "internal/plan", "internal/web/panel", "internal/keep/pin", "internal/tell/compare", "internal/tell/report", "internal/tell/suite", "internal/tell/terminal",
				"internal/keep/retention", "internal/keep/store", "internal/keep/runqueue", "internal/box/service", "internal/box/webhook",
			},
			"the client knows of a box what comes over REST: the panel's types, and what a run folder holds; its tests put a box together",
		},
		{"internal/keep/backup", []string{"internal/base/atomicfile"}, "one file with all that a box keeps is a format of names and bytes; what they mean, the service knows"},
		{"internal/keep/redact", []string{"internal/base/bounded", "internal/lab"}, "what a secret looks like does not depend on who has it; which fields of a run hold some, the run's types say"},
		{"internal/keep/support", []string{"internal/keep/redact"}, "a support bundle is texts without secrets; where they come from, it does not know"},
		{"internal/base/bounded", nil, "what a text may cost does not depend on what is read"},
		{"internal/keep/retention", nil, "what is deleted is decided of sizes, times and reasons alone, so that it can be said before"},
		{"internal/keep/pin", []string{"internal/base/atomicfile"}, "how a certificate is known again is the same for the box and for its clients"},
		{"internal/box/credentials", []string{"internal/base/atomicfile", "internal/lab"}, "who may do what is decided without knowing what there is to do"},
		{
			"internal/box/doctor",
			append([]string{
				"netlab", "internal/base/scrcpyserver", "control/power", "control/power/powertest", "internal/run/counters", "internal/run/frequency",
				"internal/run/isolate",
				"internal/base/priority", "internal/base/programs",
			}, lab...),
			"the doctor tries out what the instruments need; it makes no run",
		},
		{"internal/run/frequency", nil, "how fast the processors run does not depend on what is measured on them"},
		{"internal/run/inspect", append([]string{"netlab"}, lab...), "a process that reads one file needs the reader and nothing else"},
		{"internal/rigs/benchtable", nil, "the list that a benchmark leaves does not depend on what was measured"},
		{"internal/base/programs", nil, "the table of programs is read by all who start or look for one"},
		{
			"internal/tell/verdict",
			append([]string{"analysis/stats"}, lab...),
			"a verdict is made of trials and statistics alone, so that it can be made again",
		},
		{"internal/base/priority", nil, "whose thread goes first is a matter of the kernel, and of the one order that instruments have"},
		{"internal/base/unshare", nil, "namespaces are a matter of the kernel alone, and tests of every package may need them"},
		{"internal/base/slots", nil, "how many may connect does not depend on what they ask"},
		{"internal/base/atomicfile", nil, "whoever keeps a file may import it, so it imports nobody"},
		{"internal/run/isolate", append([]string{"internal/base/unshare"}, lab...), "isolation is a matter of the kernel alone"},
		{
			"internal/keep/store",
			append([]string{"internal/base/atomicfile", "internal/base/bounded", "internal/keep/redact"}, lab...),
			"the store keeps what it is given and knows nobody who gives it",
		},
		{
			"internal/tell/timeline",
			append([]string{"analysis/trace", "internal/keep/store", "internal/tell/report/reporttest"}, lab...),
			"a timeline is read from what is stored, so that report and export show the same; its tests read a run that is made for tests",
		},
		{
			"internal/tell/annotate",
			append([]string{"internal/keep/store", "internal/tell/loglines", "internal/tell/otlp", "internal/tell/report", "internal/tell/timeline", "netlab/archive", "netlab/replay"}, lab...),
			"what others kept of a run's time is put beside what the run kept, and its pages are written anew",
		},
		{"internal/tell/loglines", append([]string{"internal/base/bounded"}, lab...), "formats of lines, clocks and rules; which run the lines are of, it does not know"},
		{"internal/tell/otlp", append([]string{"internal/base/bounded"}, lab...), "a format of spans, and how they lie to requests; which run the requests are of, it does not know"},
		{"internal/tell/streamline", lab, "a format of bytes, and two ways in which they come; who keeps the annotations, it does not know"},
		{
			"internal/tell/report",
			[]string{"internal/lab", "internal/metric", "internal/keep/redact", "internal/keep/store", "internal/base/atomicfile", "internal/tell/timeline", "analysis/trace"},
			"a report is made from what is stored, so that it can be made again",
		},
		{
			"internal/tell/export",
			[]string{"internal/lab", "internal/metric", "internal/keep/redact", "internal/keep/store", "internal/tell/report", "internal/tell/timeline", "analysis/trace"},
			"an export is made of what is stored, as a report is, so that it can be made again",
		},
		{"internal/tell/report/reporttest", []string{"internal/lab", "internal/metric", "internal/tell/verdict"}, "a run for tests is compared as a real one is"},
		{
			"internal/tell/frames",
			append([]string{"analysis/visual", "capture/reel", "analysis/filmtest"}, lab...),
			"what a viewer is shown of a reel is read from the reel alone; its tests make reels",
		},
		{
			"internal/tell/history",
			append([]string{"analysis/change", "analysis/stats", "internal/keep/store"}, lab...),
			"a history is made of what the store's index holds and of statistics, so that it can be made again",
		},
		{"internal/fleet", lab, "head and boxes share words, as a wire format does; they import nobody who speaks them"},
		{
			"internal/fleet/ledger",
			append([]string{"internal/fleet", "internal/keep/store"}, lab...),
			"the ledger keeps who does what in a database; it knows neither HTTP nor files",
		},
		{
			"internal/fleet/bench",
			[]string{"internal/fleet", "internal/rigs/benchtable"},
			"a benchmark starts the database that it measures, and lists its results as the others do",
		},
		{
			"internal/fleet/bench/drift",
			append([]string{"cmd/appliance/client", "internal/rigs/benchrig", "netlab/archive"}, lab...),
			"a real box is made slower, and its head is asked as a person would",
		},
		{
			"internal/fleet/simulate",
			append([]string{"internal/fleet", "internal/web/panel", "internal/keep/pin", "internal/keep/store"}, lab...),
			"simulated boxes call the whole head, as its service puts it together",
		},
		{"internal/fleet/blob", append([]string{"internal/fleet", "internal/base/atomicfile"}, lab...), "files by their digest are kept without knowing what they are"},
		{
			"internal/fleet/metrology",
			append([]string{"internal/fleet", "internal/tell/history", "internal/keep/store", "analysis/stats"}, lab...),
			"a box is judged by its readings alone, so that it can be judged again, and in simulations",
		},
		{
			"internal/fleet/member",
			append([]string{"internal/fleet", "internal/fleet/blob", "internal/base/atomicfile", "internal/base/bounded", "internal/keep/pin", "internal/keep/runqueue", "internal/keep/store"}, lab...),
			"a box's side of the fleet asks the box's own queue for runs and hands in what the store has; it knows no instrument",
		},
		{
			"internal/fleet/fleettest", append([]string{"internal/fleet", "internal/fleet/blob", "internal/keep/pin", "internal/keep/store"}, lab...),
			"the fake head has the protocol and nothing behind it, and the suite that it and the real one pass; only tests import it",
		},
		{
			"internal/fleet/head",
			append([]string{
				"internal/fleet", "internal/base/atomicfile", "internal/base/bounded", "internal/box/automation", "internal/tell/compare", "internal/box/credentials", "internal/run/execute", "internal/tell/history", "internal/web/panel",
				"image/update",
				"internal/keep/pin", "internal/tell/report", "internal/keep/runqueue", "internal/keep/store", "internal/tell/verdict",
			}, lab...),
			"the head is the panel of a box with a ledger in place of the queue; it has no instrument; it reads the version of updates that it passes on",
		},
		{
			"internal/tell/runview",
			append([]string{"internal/tell/report", "internal/tell/verdict", "analysis/stats", "internal/tell/report/reporttest"}, lab...),
			"the page of a run shows what its report and its verdict say; it computes nothing anew; its tests read runs that are made for tests",
		},
		{"internal/box/webhook", []string{"internal/lab", "netlab/reach"}, "one rule says which addresses are public"},
		{"internal/box/mail", []string{"internal/lab"}, "mail is a subject and a text for a server; what they say is the caller's"},
		{
			"internal/box/automation",
			append([]string{"internal/fleet", "internal/plan", "internal/tell/history", "internal/keep/runqueue", "internal/keep/store", "internal/box/mail", "internal/box/webhook", "internal/tell/report/reporttest"}, lab...),
			"what the box does by itself asks the queue for runs as a person does; it knows neither HTTP's side of the panel nor devices; its tests read runs that are made for tests",
		},
		{
			"internal/tell/compare",
			append([]string{"analysis/stats", "internal/fleet", "internal/tell/verdict", "internal/keep/store", "internal/tell/history", "internal/tell/report/reporttest"}, lab...),
			"two runs are compared from what was kept of them; it measures nothing",
		},
		{
			"internal/web/panel/bench",
			append([]string{"internal/rigs/benchrig", "internal/run/seat", "analysis/stats"}, lab...),
			"a benchmark asks a whole appliance for runs over REST, as people and scripts do",
		},
		{
			"internal/web/panel",
			[]string{
				"internal/base/slots",
				"internal/lab",
				"internal/base/bounded",
				"internal/plan",
				"internal/keep/store",
				"internal/tell/report",
				"internal/box/automation",
				"internal/box/bisection",
				"internal/box/bisects",
				"internal/box/suites",
				"internal/box/ownruns",
				"internal/tell/suite",
				"internal/tell/export",
				"internal/tell/frames",
				"internal/tell/history",
				"internal/tell/compare",
				"internal/run/experiment",
				"internal/keep/redact",
				"internal/keep/retention",
				"internal/keep/runqueue",
				"internal/metric",
				"internal/tell/runview",
				"internal/box/credentials",
				"internal/keep/pin",
				"capture/reel",
				"analysis/filmtest",
				"internal/box/webhook",
				"docs",
			},
			"the panel is HTTP only: it reads the store and its reels, and asks the queue of runs; it drives no instrument; its tests make reels, " +
				"and say what webhooks may call",
		},
		{"internal/base/adbserver", lab, "the protocol is what a source and a controller have in common, so it knows neither"},
		{
			"internal/base/scrcpyserver", append([]string{"internal/base/adbserver"}, lab...),
			"a program that a source and a controller both run on a phone, so it knows neither",
		},
		{"internal/base/rfb", lab, "the protocol is what a source and a controller have in common, so it knows neither"},
		{
			"internal/rigs/storytest",
			append([]string{"netlab/link"}, lab...),
			"the story is told over REST alone, so it needs to know nothing of the box but its words, and how a cable behaves",
		},
		{"internal/rigs/samplesite", lab, "the sample site is an origin like any other and knows nothing of who visits it"},
		{
			"internal/rigs/benchrig",
			append(
				[]string{"netlab", "internal/run/device", "internal/run/experiment", "internal/run/isolate", "internal/run/execute",
					"internal/rigs/benchtable", "internal/rigs/samplesite"},
				lab...),
			"a benchmark of whole trials has the product's own rig and procedure, and no other",
		},
		{
			"internal/rigs/appsuite",
			append([]string{"netlab/archive"}, lab...),
			"applications are measured with the appliance's own command, and read from what it wrote",
		},
		{
			"internal/rigs/truth",
			append(
				[]string{
					"analysis/stats",
					"netlab/archive",
					"internal/rigs/benchtable",
					"internal/rigs/benchrig",
					"internal/plan",
					"internal/run/experiment",
					"internal/run/isolate",
					"internal/rigs/samplesite",
					"internal/tell/verdict",
				},
				lab...),
			"the truth is asked of the product's procedure and verdict as they are",
		},
		{"internal/run/counters", lab, "what is counted of a program is counted alike of a browser and by the doctor"},
		{"internal/run/meter", lab, "the meter is a process of its own beside a trial, and knows nothing of it"},
		{
			"internal/rigs/usbgrabber",
			append([]string{"capture", "analysis/tearing", "internal/run/execute", "internal/run/experiment"}, lab...),
			"a stick of software: its tests film it as a trial does",
		},
		{
			"internal/rigs/grabbers",
			append([]string{"analysis", "capture", "internal/metric", "internal/rigs/benchrig", "internal/run/experiment", "internal/tell/verdict"}, lab...),
			"what a grabber does to the numbers is measured on a film, as a run would measure it, and in runs by the binary",
		},
		{
			"internal/rigs/noise",
			append(
				[]string{
					"analysis/stats",
					"netlab/archive",
					"internal/rigs/benchtable",
					"internal/rigs/benchrig",
					"internal/run/experiment",
					"internal/run/isolate",
					"internal/run/execute",
				},
				lab...),
			"what differs between loads is looked for in the product's own trials",
		},
		{"internal/rigs/testlab", []string{"internal/base/unshare"}, "tests of every package import it"},
		{"internal/rigs/testrun", nil, "it starts the go command; it links nothing that it tests"},
		{"internal/rigs/repotest", nil, "it reads the tree, it does not link it"},
		{
			"cmd",
			[]string{"netlab", "capture", "control", "analysis", "systemd", "image", "internal"},
			"commands wire everything and are imported by nobody",
		},
	}
}
