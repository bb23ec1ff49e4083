package lab

// Sampled says how a trial's processes were read; see ProcessSample.
type Sampled struct {
	Hz       float64 `json:"hz"` // as asked for
	Readings int     `json:"readings"`
	// Slowed is how often the time between readings was doubled, because they took more than MostSampling of a
	// processor.
	Slowed int `json:"slowed,omitempty"`
	// CostMS is the processor time that the readings took in the WallMS that they went on.
	CostMS float64 `json:"cost_ms"`
	WallMS float64 `json:"wall_ms"`
	Left   int     `json:"left,omitempty"` // samples beyond MostSamples
	// BoundMS is within how much the time of each reading is known, where another clock stamped it.
	BoundMS float64 `json:"bound_ms,omitempty"`
	Lacks   string  `json:"lacks,omitempty"` // why something could not be read
}

// Bounds of sampling.
const (
	MostSamples  = 200000 // of one trial
	MostSampling = 0.03   // of a processor
)

// ProcessSample is what a process did in the For before At. A process that did nothing has none.
type ProcessSample struct {
	At  Time `json:"t_ns"`
	PID int  `json:"pid"`           // 0 for the machine's pressure and energy, and for counters
	TID int  `json:"tid,omitempty"` // of one thread, whose work is also part of its process's; 0 for the process
	// Name and Of are told when they are new: what the process is, and whose.
	Name string `json:"name,omitempty"`
	Of   string `json:"of,omitempty"` // one of the Of… constants
	For  int64  `json:"for_ns"`
	// Ran is the processor time of all its threads. Waited is for how long its main thread, of pressure any thread of
	// the machine, could have run and did not.
	Ran    int64 `json:"ran_ns,omitempty"`
	Waited int64 `json:"waited_ns,omitempty"`
	// RSS and Own are what is in memory of it, and what of that it shares with no file and no other process's buffer; 0
	// where they were not read.
	RSS int64 `json:"rss_bytes,omitempty"`
	Own int64 `json:"own_bytes,omitempty"`
	// Counted is how often something happened, of one of the Counter… constants, or the µJ that a part of the machine took (EnergyOf);
	// PID is then 0, and each sample has the Name.
	Counted int64 `json:"counted,omitempty"`
	// PSS is what is in memory of it, with its share of what others have as well, where that was read.
	PSS   int64 `json:"pss_bytes,omitempty"`
	Ended bool  `json:"ended,omitempty"` // it is gone
}

// AllProcessors is the name of the samples of what all processors of a phone did, with PID 0.
const AllProcessors = "all processors"

// Whose a process is.
const (
	OfBrowser = "browser"
	OfBox     = "box"    // the appliance, its link, screen and encoder
	OfOthers  = "others" // of the device's namespace
	OfMachine = "machine"
)

// Names of counters: events of the browser and all that it starts, which the kernel and the processor count.
const (
	CounterCycles       = "cycles"
	CounterInstructions = "instructions"
	CounterCacheMisses  = "cache misses"
	CounterBranchMisses = "branch misses"
	CounterTaskClock    = "task clock" // ns
	CounterSwitches     = "context switches"
	CounterMigrations   = "migrations"
	CounterFaults       = "page faults"
)

// EnergyOf begins the name of the samples of a part's energy. EnergyOfPackages begins that of a processor's: all that is
// on its chip.
const (
	EnergyOf         = "energy: "
	EnergyOfPackages = EnergyOf + "package-"
)
