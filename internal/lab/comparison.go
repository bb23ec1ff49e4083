package lab

// What a comparison found.
const (
	Slower   = "slower"  // a guarded metric got worse, and none better
	Faster   = "faster"  // one got better, and none worse
	Mixed    = "mixed"   // some got worse and some better
	NoChange = "none"    // no difference was found, see Effect.MinimalEffect
	Unknown  = "unknown" // too few pairs of valid trials
)

// Comparison is what a run with two arms says of the change from the control
// to the treatment.
type Comparison struct {
	Verdict string `json:"verdict"` // slower, faster, mixed, none or unknown
	// Headline and Detail are the verdict in words: "Treatment (link 3g) is
	// slower" and the number that it rests on.
	Headline string `json:"headline"`
	Detail   string `json:"detail"`
	// Partial is set where the run ended before all its trials were done.
	Partial bool `json:"partial,omitempty"`
	// Control and Treatment are what each arm has that the other has not: "link lte".
	Control   string `json:"control"`
	Treatment string `json:"treatment"`
	// Pairs are the first, second … valid trials of both arms in each block; LeftOut
	// is how many trials are not valid.
	Pairs   int      `json:"pairs"`
	LeftOut int      `json:"left_out"`
	Level   float64  `json:"level"` // of significance, for all guarded metrics together
	Seed    uint64   `json:"seed"`  // of permutations and dithering
	Effects []Effect `json:"effects"`
}

// Effect is the change of one metric.
type Effect struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Guard marks the metrics that the verdict rests on.
	Guard bool `json:"guard"`
	// Finding is slower, faster, none or unknown; of a metric that is no guard,
	// larger and smaller stand for the first two.
	Finding string `json:"finding"`
	Pairs   int    `json:"pairs"`
	// Control and Treatment are the medians of all valid trials.
	Control   float64 `json:"control"`
	Treatment float64 `json:"treatment"`
	// Shift is how much larger the treatment is; Percent is the same relative to
	// the control's median, and not there where that is 0.
	Shift   Range  `json:"shift"`
	Percent *Range `json:"percent,omitempty"`
	// P is of the test of no difference, Adjusted after it was corrected for the
	// number of metrics. Permutations is 0 where P is exact.
	P            float64 `json:"p"`
	Adjusted     float64 `json:"p_adjusted"`
	Permutations int     `json:"permutations"`
	// Delta is Cliff's δ, −1 … 1, and DeltaSize what it is called.
	Delta     float64 `json:"delta"`
	DeltaSize string  `json:"delta_size"`
	// MinimalEffect is the shift that would have been found four times of five.
	MinimalEffect float64 `json:"minimal_effect"`
	// ModeChange is set where the arms differ in their number of modes.
	ModeChange bool     `json:"mode_change,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Range is an estimate with its interval.
type Range struct {
	Value      float64 `json:"value"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}
