package lab

// The covariates: numbers of a trial that are known before its arm can act, in Trial.Before, by which a comparison is
// adjusted. Nothing that happens after the page was asked for is one.
const (
	// CovariateSettle is the processor time that the browser took from its birth until the key.
	CovariateSettle = "browser_settle_ms"
	// CovariateRequest is the time from the key until the box was asked for the page. An arm can change it by the
	// page's address, the link and the browser's profile, by nothing else: no byte of the page has come.
	CovariateRequest = "key_to_request_ms"
	// CovariatePage is how long the browser took for a fixed layout on the synchronisation page.
	CovariatePage = "page_meter_ms"
	// CovariateMeter and CovariateMeterProcessor are the time and the processor time of a fixed load in a process of
	// its own, before the browser was born.
	CovariateMeter          = "meter_ms"
	CovariateMeterProcessor = "meter_processor_ms"
	// CovariateNone in a plan is none of them.
	CovariateNone = "none"
)

// MeterReading is what the load of CovariateMeter took, in ms.
type MeterReading struct {
	Wall      float64 `json:"wall_ms"`
	Processor float64 `json:"processor_ms"`
}

// Covariates lists them, those first that tell most of a load.
func Covariates() []string {
	return []string{CovariateRequest, CovariateSettle, CovariateMeter, CovariatePage, CovariateMeterProcessor}
}

// Adjustment is what covariates did to the effect on a metric.
type Adjustment struct {
	Covariates []string `json:"covariates"` // that were used
	// Explained is the share of the variance within blocks that they took out; Spread is the standard deviation that is
	// left, RawSpread the one without them.
	Explained float64 `json:"explained_share"`
	Spread    float64 `json:"spread"`
	RawSpread float64 `json:"raw_spread"`
	// Raw is the shift without them, with its p-value and smallest effect.
	Raw           Range   `json:"raw_shift"`
	RawP          float64 `json:"raw_p"`
	MinimalEffect float64 `json:"raw_minimal_effect"`
}

// CovariateUse is what became of a covariate that the plan declares.
type CovariateUse struct {
	Name string `json:"name"`
	// P is the p-value of the test whether the arms differ in it. If they do, it was dropped, as it would hide a part
	// of what the arm did.
	P       float64 `json:"p"`
	Dropped bool    `json:"dropped,omitempty"`
	// Trials is how many valid trials have it.
	Trials int `json:"trials"`
}
