package metric

// counted is the entry of something that the kernel or the processor counts while a load lasts.
func counted(m ID) Entry {
	e := map[ID]Entry{
		TaskClock: {Name: "task_clock_ms", Unit: "ms", Label: "Task clock",
			Short: "What the browser computed, short-lived programs too", Says: "The browser and what it started computed for",
			Method: "the kernel's task clock of the browser and of all that it starts (perf_event_open)"},
		Cycles: {Name: "cycles_million", Unit: "million", Label: "Processor cycles",
			Short: "Cycles that the browser had of processors", Says: "The browser took processor cycles:",
			Method: "processor cycles of the browser and all that it starts, counted by the processor"},
		Instructions: {Name: "instructions_million", Unit: "million", Label: "Instructions",
			Short: "Instructions that the browser carried out", Says: "The browser carried out instructions:",
			Method: "instructions of the browser and all that it starts, counted by the processor"},
		CacheMisses: {Name: "cache_misses_million", Unit: "million", Label: "Cache misses",
			Short: "Reads that the last cache did not have", Says: "The browser missed the last cache:",
			Method: "accesses of the browser and all that it starts that the last cache did not have, counted by the processor"},
		BranchMisses: {Name: "branch_misses_million", Unit: "million", Label: "Branch misses",
			Short: "Branches that the processor foresaw wrongly", Says: "The processor foresaw branches wrongly:",
			Method: "branches of the browser and all that it starts that the processor foresaw wrongly, counted by it"},
		ContextSwitches: {Name: "context_switches", Unit: "times", Label: "Context switches",
			Short: "How often a thread gave up its processor", Says: "Threads of the browser gave up their processor",
			Method: "context switches of the browser and all that it starts, counted by the kernel"},
		Migrations: {Name: "migrations", Unit: "times", Label: "Migrations",
			Short: "How often a thread came to another processor", Says: "Threads of the browser came to another processor",
			Method: "migrations to another processor of the browser and all that it starts, counted by the kernel"},
		PageFaults: {Name: "page_faults", Unit: "times", Label: "Page faults",
			Short: "How often memory had to be mapped", Says: "The browser's memory had to be mapped",
			Method: "page faults, also those without a disk, of the browser and all that it starts, counted by the kernel"},
		Energy: {Name: "energy_j", Unit: "J", Label: "Energy",
			Short: "What the machine's processors took", Says: "The machine's processors took",
			Method: "energy of all processor packages of the machine, also for others' work (RAPL, by the kernel's powercap)"},
	}[m]
	e.Method += ", over the same time"
	e.Better, e.Scope, e.Groups, e.Doc = Lower, OfLoad, []string{Machine}, docMachine
	return e
}
