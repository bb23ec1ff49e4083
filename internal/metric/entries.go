package metric

// The metrics, in the order of reports. The guards of a load come first, the most telling before the others.
const (
	_ ID = iota
	SpeedIndex
	TimeToStable
	FirstChange
	LastChange
	UniqueRate
	UniqueFrames
	FirstContent
	Complete50
	Complete75
	Complete85
	Complete90
	Complete95
	Complete99
	Complete100
	VisualReadiness
	MeanFirstChange
	MeanChanges
	SpeedIndexWPT
	PerceptualIndex
	ContentfulIndex
	SpeedlineIndex
	SpeedlinePerceptual
	ReplayConfidence
	Journey
	TimeToEnd
	FirstFeedback
	FirstLasting
	FirstWindow
	ResponseTime
	ResponseSettled
	ResponseP10
	ResponseP90
	ResponseMax
	ResponseInputShare
	ResponseSourceShare
	ResponseEcho
	ResponseEchoP90
	IdleRate
	IdleLastChange
	IdleArea
	IdleProcessor
	ProgramMemory
	AnimationRate
	DuplicateFrames
	LostFrames
	LongestGap
	IntervalP50
	IntervalP95
	IntervalP99
	MissedRefreshes
	MissedWorst
	Janks
	Stalls
	MovementX
	MovementY
	MovementZoom
	MovementSpeed
	MovementUnevenness
	MovementOvershoot
	MovementFrames
	MovementLongestStep
	InputToMovement
	BlankSum
	BlankMost
	BlankMean
	Checkerboard
	BlankLongest
	TornFrames
	TornPercent
	TornRun
	Stable2048
	Stable4096
	StableEntropy
	StableCamera
	Instability
	InstabilityWorst
	KeyColour
	KeyColours
	Hero
	LargestPainted
	LastPainted
	WindowFirstChange
	WindowLastChange
	WindowStable
	WindowSpeedIndex
	WindowPixels
	InputToChange
	InputToSettled
	CodeFrames
	CodeSkipped
	CodeBroken
	CodeClock
	ProcessorTime
	ProcessorWait
	MemoryPeak
	MainWork
	ScriptWork
	LayoutWork
	PaintWork
	TaskClock
	Cycles
	Instructions
	CacheMisses
	BranchMisses
	ContextSwitches
	Migrations
	PageFaults
	Energy
	count // behind the last
)

// The sections that define the metrics.
const (
	docLoads   = "docs/metrics.md#page-loads"
	docReplay  = "docs/replay.md#replay"
	docSteps   = "docs/scenarios.md#what-is-measured"
	docPings   = "docs/scenarios.md#how-soon-a-page-answers"
	docIdle    = "docs/scenarios.md#what-still-changes"
	docRate    = "docs/metrics.md#frame-rate-rate"
	docMotion  = "docs/metrics.md#movement-motion"
	docBlank   = "docs/metrics.md#blank-areas-blank"
	docTearing = "docs/metrics.md#tearing-tearing"
	docStable  = "docs/metrics.md#stable-frame-stable"
	docShift   = "docs/metrics.md#layout-instability-shift"
	docColours = "docs/metrics.md#colours-colours"
	docPaint   = "docs/metrics.md#elements-paint"
	docWindow  = "docs/metrics.md#windows-and-inputs-window-response"
	docMachine = "docs/metrics.md#the-machine-machine"
	docWork    = "docs/metrics.md#work-work"
	docCodes   = "docs/metrics.md#frame-codes"
)

// entries is the registry. It never changes.
var entries = [count]Entry{
	SpeedIndex: {Name: "speed_index_ms", Unit: "ms", Label: "SpeedIndex",
		Short: "Mean time to appear, over the whole screen", Says: "SpeedIndex is",
		Method: "Σ(tₖ−tₖ₋₁)(1−pₖ₋₁/100), truncated, where p is visual progress in whole percent by " +
			"colour histograms. Animation and scrolling make it larger; compare it only with the same " +
			"flavour",
		Source: "browsertime's histogram flavour, sitespeed.io visualmetrics-portable",
		Better: Lower, Scope: OfLoad, Guard: true, Groups: []string{Load}, Doc: docLoads},
	TimeToStable: {Name: "time_to_stable_ms", Unit: "ms", Label: "Looks finished",
		Short: "No large change comes after", Says: "The page looked finished after",
		Method: "the frame after the last with more than 4096 pixels whose luma differs by 5 or more " +
			"of 255 from the frame before; the start frame if there is none, no value if it is the final " +
			"frame",
		Source: "Eideticker, get_stable_frame",
		Better: Lower, Scope: OfLoad, Instant: true, Guard: true, Groups: []string{Load}, Doc: docLoads},
	FirstChange: {Name: "first_visual_change_ms", Unit: "ms", Label: "First visual change",
		Short: "Something appears", Says: "Something appeared after",
		Method: "first frame in which any pixel of the content area differs from the start frame",
		Source: "browsertime, without its tolerance and its blind top rows",
		Better: Lower, Scope: OfLoad, Instant: true, Guard: true, Groups: []string{Load}, Doc: docLoads},
	LastChange: {Name: "last_visual_change_ms", Unit: "ms", Label: "Last visual change",
		Short: "Nothing moves any more", Says: "Nothing moved any more after",
		Method: "last frame in which any pixel of the content area differs from the frame before",
		Source: "browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Guard: true, Groups: []string{Load}, Doc: docLoads},
	UniqueRate: {Name: "unique_fps", Unit: "frames/s", Label: "Unique frame rate",
		Short: "Frames a second that showed something new", Says: "New pictures came at",
		Method: "unique frames from the first to before the last ÷ the time between; no value with fewer than two",
		Source: "Eideticker specification",
		Better: Higher, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	UniqueFrames: {Name: "unique_frames", Unit: "frames", Label: "Unique frames",
		Short: "Frames that showed something new",
		Method: "frames that differ from the frame before: by any pixel, or in as many pixels by a " +
			"step of luma as was asked for",
		Source: "Eideticker specification",
		Better: Neither, Scope: OfLoad, Groups: []string{Load, Rate}, Doc: docLoads},
	FirstContent: {Name: "first_content_ms", Unit: "ms", Label: "First content",
		Short: "The page is no longer one flat colour", Says: "Content appeared after",
		Method: "first changed frame whose content area is not one flat colour; what remains of the synchronisation page does not count",
		Source: "WebPageTest's start render, for any background",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete50: {Name: "visual_complete_50_ms", Unit: "ms", Label: "Visually complete, 50 %",
		Short: "50 % of the final picture is there", Says: "50 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 50 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete75: {Name: "visual_complete_75_ms", Unit: "ms", Label: "Visually complete, 75 %",
		Short: "75 % of the final picture is there", Says: "75 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 75 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete85: {Name: "visual_complete_85_ms", Unit: "ms", Label: "Visually complete, 85 %",
		Short: "85 % of the final picture is there", Says: "85 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 85 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete90: {Name: "visual_complete_90_ms", Unit: "ms", Label: "Visually complete, 90 %",
		Short: "90 % of the final picture is there", Says: "90 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 90 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete95: {Name: "visual_complete_95_ms", Unit: "ms", Label: "Visually complete, 95 %",
		Short: "95 % of the final picture is there", Says: "95 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 95 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete99: {Name: "visual_complete_99_ms", Unit: "ms", Label: "Visually complete, 99 %",
		Short: "99 % of the final picture is there", Says: "99 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 99 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	Complete100: {Name: "visual_complete_100_ms", Unit: "ms", Label: "Visually complete, 100 %",
		Short: "100 % of the final picture is there", Says: "100 % of the page had appeared after",
		Method: "first frame from which visual progress stays at 100 % or more",
		Source: "WebPageTest, browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Load}, Doc: docLoads},
	VisualReadiness: {Name: "visual_readiness_ms", Unit: "ms", Label: "Visual readiness",
		Short:  "From the first change to the last",
		Method: "from the first to the last visual change",
		Source: "sitespeed.io",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	MeanFirstChange: {Name: "mean_first_change_ms", Unit: "ms", Label: "Mean first change",
		Short:  "When the places of the screen changed first, on average",
		Says:   "on average, a place of the screen changed first after",
		Method: "mean, over all pixels that ever change, of the time of their first change: the heat map as one number",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	SpeedIndexWPT: {Name: "speed_index_wpt_ms", Unit: "ms", Label: "SpeedIndex, WebPageTest's flavour",
		Short:  "Mean time to appear",
		Method: "as SpeedIndex, but a histogram bin may be met by changes in bins i−5 … i+4, greedily from below",
		Source: "WPO-Foundation/visualmetrics",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	PerceptualIndex: {Name: "perceptual_speed_index_ms", Unit: "ms", Label: "Perceptual Speed Index",
		Short: "Mean time to look like the end",
		Method: "t₁ + Σ(tₖ₊₁−tₖ)(1−SSIM(k, final)) over the frames that changed, truncated; SSIM with " +
			"a Gaussian of σ 1.5 and 11 taps, content scaled to fit 400×400 by area mean",
		Source: "browsertime with pyssim",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	ContentfulIndex: {Name: "contentful_speed_index_ms", Unit: "ms", Label: "Contentful Speed Index",
		Short: "Mean time until edges are there",
		Method: "t₁ + Σ(tₖ₊₁−tₖ)(1−Cₖ₊₁) over the frames that changed, truncated; C: Canny edge pixels " +
			"relative to the frame with the most, content scaled to fit 400×400 by area mean",
		Source: "browsertime with OpenCV",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	SpeedlineIndex: {Name: "speedline_index_ms", Unit: "ms", Label: "SpeedIndex, speedline's flavour",
		Short: "Mean time to appear, as Lighthouse has it",
		Method: "t_f + Σ(tₖ−tₖ₋₁)(1−pₖ₋₁/100) over the frames after the first with p > 0, at t_f; from " +
			"a white page, pixels ≥ 249 dropped, nothing floored but p",
		Source: "speedline, Lighthouse",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	SpeedlinePerceptual: {Name: "speedline_perceptual_index_ms", Unit: "ms", Label: "Perceptual index, speedline's flavour",
		Short: "Mean time to look like the end",
		Method: "the speedline index with p = 100·max(0, (SSIM(k) − SSIM(white)) ÷ (1 − SSIM(white))); " +
			"windows of 8 × 8 that do not overlap, luma of BT.709",
		Source: "speedline with image-ssim",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads},
	ReplayConfidence: {Name: "replay_confidence", Unit: "share", Label: "Replay confidence",
		Short:  "How well the recording answered",
		Method: "mean score of the requests that were answered from the recording; a miss is 0",
		Better: Higher, Scope: OfRun, Doc: docReplay},
	Journey: {Name: "journey_ms", Unit: "ms", Label: "Journey",
		Short: "Sum of all steps' times to their ends", Says: "The journey took",
		Method: "sum of the times to the end of the steps of the outermost level",
		Better: Lower, Scope: OfJourney, Doc: docSteps},
	TimeToEnd: {Name: "time_to_end_ms", Unit: "ms", Label: "Time to end",
		Short: "Since when the step's end holds", Says: "The end was reached after",
		Method: "from the step's input to the instant since which the conditions of its end hold, on exact frames",
		Better: Lower, Scope: OfStep, Instant: true, Guard: true, Doc: docSteps},
	FirstFeedback: {Name: "first_feedback_ms", Unit: "ms", Label: "First feedback",
		Short: "Something reacts", Says: "Something reacted after",
		Method: "first frame after the input in which any pixel of the content area differs from the " +
			"step's start picture: the pressed state of a button counts",
		Better: Lower, Scope: OfStep, Instant: true, Doc: docSteps},
	FirstLasting: {Name: "first_lasting_change_ms", Unit: "ms", Label: "First lasting change",
		Short: "What the step leads to begins to appear", Says: "What stays began to appear after",
		Method: "first frame after the input in which 5 % of the pixels that the step changes have the " +
			"colour that they have at its end: a pressed state that goes again does not count",
		Better: Lower, Scope: OfStep, Instant: true, Doc: docSteps},
	FirstWindow: {Name: "first_window_ms", Unit: "ms", Label: "First window",
		Short: "The first window, or splash screen, is there", Says: "The first window appeared after",
		Method: "of a step that starts a program: the first frame in which a connected part that differs from the step's start " +
			"picture is as large as half a percent of the screen",
		Better: Lower, Scope: OfStep, Instant: true, Doc: docSteps},
	ResponseTime: {Name: "response_ms", Unit: "ms", Label: "Response",
		Short: "From an input to what it changes first", Says: "The region answered after",
		Method: "median over the inputs, each at a random phase of the screen, of the time from the " +
			"middle of an input's interval to the first frame in which a pixel of the region differs; low " +
			"and high bound it as if every input and every change had come as early, and as late, as " +
			"intervals and frames allow",
		Better: Lower, Scope: OfStep, Instant: true, Guard: true, Doc: docPings},
	ResponseSettled: {Name: "response_settled_ms", Unit: "ms", Label: "Response settled",
		Short: "From an input to its last change", Says: "The region had settled after",
		Method: "median over the inputs of the time to the last changed frame before the region is quiet",
		Better: Lower, Scope: OfStep, Instant: true, Doc: docPings},
	ResponseP10: {Name: "response_p10_ms", Unit: "ms", Label: "Response, 10 % quantile",
		Short:  "One answer of ten is faster",
		Method: "10 % quantile of the response's times",
		Better: Lower, Scope: OfStep, Doc: docPings},
	ResponseP90: {Name: "response_p90_ms", Unit: "ms", Label: "Response, 90 % quantile",
		Short:  "One answer of ten is slower",
		Method: "90 % quantile of the response's times",
		Better: Lower, Scope: OfStep, Doc: docPings},
	ResponseMax: {Name: "response_max_ms", Unit: "ms", Label: "Response, slowest",
		Short:  "The slowest answer",
		Method: "the longest of the response's times",
		Better: Lower, Scope: OfStep, Doc: docPings},
	ResponseInputShare: {Name: "response_input_share_ms", Unit: "ms", Label: "Unknown by the input",
		Short: "Width of the inputs' intervals",
		Method: "median width of the inputs' intervals: what is unknown because the device got the " +
			"input somewhere in it",
		Better: Neither, Scope: OfStep, Doc: docPings},
	ResponseSourceShare: {Name: "response_source_share_ms", Unit: "ms", Label: "Unknown by the screen",
		Short: "Time between two pictures",
		Method: "median time between the answer's frame and the frame before it: what is unknown " +
			"because pictures are taken at intervals",
		Better: Neither, Scope: OfStep, Doc: docPings},
	ResponseEcho: {Name: "response_echo_ms", Unit: "ms", Label: "Caps Lock's echo",
		Short: "What input alone takes", Says: "The keyboard's light answered after",
		Method: "median over the presses of Caps Lock of the time from the middle of the press's " +
			"interval to the middle of the interval in which the device switched the keyboard's light on: " +
			"what input alone takes, without page and screen",
		Better: Lower, Scope: OfStep, Doc: docPings},
	ResponseEchoP90: {Name: "response_echo_p90_ms", Unit: "ms", Label: "Caps Lock's echo, 90 % quantile",
		Short:  "One echo of ten is slower",
		Method: "90 % quantile of the echo's times",
		Better: Lower, Scope: OfStep, Doc: docPings},
	IdleRate: {Name: "idle_fps", Unit: "frames/s", Label: "Idle frame rate",
		Short: "What changes though nothing is done", Says: "Pictures went on changing at",
		Method: "frames in which a pixel of the content area differs from the frame before, a second, " +
			"over the time without input",
		Better: Neither, Scope: OfStep, Doc: docIdle},
	IdleLastChange: {Name: "idle_last_change_ms", Unit: "ms", Label: "Idle until",
		Short:  "When the last of it changed",
		Method: "from the beginning of the idle time to its last changed frame; 0 where none changed",
		Better: Neither, Scope: OfStep, Doc: docIdle},
	IdleArea: {Name: "idle_area_percent", Unit: "%", Label: "Idle area",
		Short:  "How much of the screen changed at most",
		Method: "share of the pixels of the content area that changed in the frame that changed most",
		Better: Neither, Scope: OfStep, Doc: docIdle},
	IdleProcessor: {Name: "idle_processor_percent", Unit: "%", Label: "Idle processor",
		Short: "Processor time though nothing is done",
		Method: "processor time of all processes of the browser or app in the idle time ÷ that time; 100 is one processor; " +
			"what a process used that has ended meanwhile is not in it",
		Better: Lower, Scope: OfStep, Doc: docIdle},
	ProgramMemory: {Name: "program_memory_mb", Unit: "MB", Label: "Memory",
		Short: "Memory of the program at the end of the idle time",
		Method: "sum over all processes of the browser or app of their proportional set size (PSS) at the end of the idle time: " +
			"memory that several share counts in shares",
		Better: Lower, Scope: OfStep, Doc: docIdle},
	AnimationRate: {Name: "animation_fps", Unit: "frames/s", Label: "Frame rate",
		Short:  "Pictures a second while something moved",
		Method: "unique frames from the first to before the last ÷ the time between: (n − 1) ÷ (tₙ − t₁)",
		Source: "Eideticker",
		Better: Higher, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	DuplicateFrames: {Name: "duplicate_frames", Unit: "frames", Label: "Repeated frames",
		Short:  "Frames that showed nothing new while something moved",
		Method: "frames equal to the one before, between the first and the last unique frame",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	LostFrames: {Name: "lost_frames", Unit: "frames", Label: "Lost frames",
		Short:  "Frames that the source skipped",
		Method: "frames missing by the source's own numbers",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	LongestGap: {Name: "longest_gap_ms", Unit: "ms", Label: "Longest gap",
		Short:  "Longest time without a new picture",
		Method: "longest interval between neighbouring unique frames",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	IntervalP50: {Name: "frame_interval_p50_ms", Unit: "ms", Label: "Frame interval, median",
		Short:  "From picture to picture",
		Method: "50th percentile (type 7) of the intervals between neighbouring unique frames",
		Source: "Hyndman and Fan 1996",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	IntervalP95: {Name: "frame_interval_p95_ms", Unit: "ms", Label: "Frame interval, 95 %",
		Short:  "From picture to picture",
		Method: "95th percentile (type 7) of the intervals between neighbouring unique frames",
		Source: "Hyndman and Fan 1996",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	IntervalP99: {Name: "frame_interval_p99_ms", Unit: "ms", Label: "Frame interval, 99 %",
		Short:  "From picture to picture",
		Method: "99th percentile (type 7) of the intervals between neighbouring unique frames",
		Source: "Hyndman and Fan 1996",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	MissedRefreshes: {Name: "missed_refreshes", Unit: "refreshes", Label: "Missed refreshes",
		Short: "Refreshes that brought no new picture",
		Method: "refreshes from the first to the last unique frame that brought no new picture, on the " +
			"screen's own grid of refreshes, of the phase that fits all unique frames best",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	MissedWorst: {Name: "missed_refreshes_worst_percent", Unit: "%", Label: "Missed refreshes, worst second",
		Short:  "In the second with the most of them",
		Method: "largest share of refreshes without a new picture in a window of one second",
		Source: "Chromium, cc/metrics: dropped frames",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	Janks: {Name: "jank_count", Unit: "janks", Label: "Janks",
		Short:  "Intervals longer than the one before, as Chromium counts",
		Method: "intervals longer than the one before by more than half a refresh",
		Source: "Chromium, cc/metrics/jank_metrics.cc",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	Stalls: {Name: "stalls", Unit: "stalls", Label: "Stalls",
		Short:  "Intervals much longer than usual",
		Method: "intervals of more than one and a half times the median",
		Better: Lower, Scope: OfLoad, Groups: []string{Rate}, Doc: docRate},
	MovementX: {Name: "movement_x_px", Unit: "pixels", Label: "Movement across",
		Short:  "How far the picture moved",
		Method: "sum of the horizontal displacements",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementY: {Name: "movement_y_px", Unit: "pixels", Label: "Movement down",
		Short:  "How far the picture moved; up is negative",
		Method: "sum of the vertical displacements, up is negative",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementZoom: {Name: "movement_zoom", Label: "Zoom",
		Short:  "By how much the picture grew",
		Method: "product of the scales about the area's centre",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementSpeed: {Name: "movement_speed", Unit: "pixels/s", Label: "Movement, speed",
		Short:  "Along its path",
		Method: "length of the path ÷ the time from before its first to its last movement",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementUnevenness: {Name: "movement_unevenness_px", Unit: "pixels", Label: "Unevenness",
		Short: "How much a frame's step differs from its neighbours'",
		Method: "root mean square of dₖ − (dₖ₋₁ + dₖ₊₁)/2, the displacement of a frame less the mean " +
			"of its neighbours', between the first and the last movement: 0 for an even pace and for one " +
			"that changes evenly",
		Better: Lower, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementOvershoot: {Name: "movement_overshoot_px", Unit: "pixels", Label: "Overshoot",
		Short:  "How far the picture went beyond where it stopped",
		Method: "how far the picture went beyond where it stopped, along the line from start to end",
		Better: Lower, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementFrames: {Name: "movement_frames", Unit: "frames", Label: "Movement, length",
		Short:  "Frames in which the picture moved",
		Method: "frames whose picture moved by 0.05 px or more",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	MovementLongestStep: {Name: "movement_longest_step_px", Unit: "pixels", Label: "Movement, longest step",
		Short:  "From frame to frame",
		Method: "largest displacement between two frames",
		Better: Neither, Scope: OfLoad, Groups: []string{Motion}, Doc: docMotion},
	InputToMovement: {Name: "input_to_movement_ms", Unit: "ms", Label: "Input to movement",
		Short: "Until the picture first moved",
		Method: "from the first input of the log to the first frame whose picture has moved by 0.05 px " +
			"or more, with the bounds of both",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Motion}, Doc: docMotion},
	BlankSum: {Name: "blank_sum", Unit: "frames", Label: "Blank, summed",
		Short:  "Share of the area that was not drawn, over all frames",
		Method: "sum over the frames of the blank share of the area",
		Source: "Eideticker's checkerboard, by share instead of by box",
		Better: Lower, Scope: OfLoad, Groups: []string{Blank}, Doc: docBlank},
	BlankMost: {Name: "blank_most_percent", Unit: "%", Label: "Blank, worst frame",
		Short:  "Largest share that was not drawn",
		Method: "largest blank share of a frame",
		Better: Lower, Scope: OfLoad, Groups: []string{Blank}, Doc: docBlank},
	BlankMean: {Name: "blank_mean_percent", Unit: "%", Label: "Blank, mean",
		Short:  "Mean share that was not drawn",
		Method: "mean over the frames of the blank share of the area",
		Better: Lower, Scope: OfLoad, Groups: []string{Blank}, Doc: docBlank},
	Checkerboard: {Name: "checkerboard", Unit: "frames", Label: "Checkerboard",
		Short:  "Biggest box of the blank colour, over all frames",
		Method: "sum over the frames of the biggest box of the colour ÷ the area; with a colour only",
		Source: "Eideticker",
		Better: Lower, Scope: OfLoad, Groups: []string{Blank}, Doc: docBlank},
	BlankLongest: {Name: "blank_longest_frames", Unit: "frames", Label: "Blank, longest",
		Short:  "Until a part of the picture was drawn",
		Method: "most frames for which a piece of the picture stayed blank until it was drawn",
		Better: Lower, Scope: OfLoad, Groups: []string{Blank}, Doc: docBlank},
	TornFrames: {Name: "torn_frames", Unit: "frames", Label: "Torn frames",
		Short:  "Frames that show parts of two pictures",
		Method: "frames that show parts of two pictures",
		Better: Lower, Scope: OfLoad, Groups: []string{Tearing}, Doc: docTearing},
	TornPercent: {Name: "torn_percent", Unit: "%", Label: "Torn frames, share",
		Short:  "Of the frames that show something new",
		Method: "torn frames ÷ frames that differ from the one before",
		Better: Lower, Scope: OfLoad, Groups: []string{Tearing}, Doc: docTearing},
	TornRun: {Name: "torn_run_frames", Unit: "frames", Label: "Torn frames in a row",
		Short:  "The most of them",
		Method: "most successive torn frames",
		Better: Lower, Scope: OfLoad, Groups: []string{Tearing}, Doc: docTearing},
	Stable2048: {Name: "stable_2048_ms", Unit: "ms", Label: "Stable, 2048 pixels",
		Short: "No frame with more changed pixels follows",
		Method: "the frame after the last with more than 2048 pixels whose luma differs from the frame " +
			"before by the step or more",
		Source: "Eideticker, HDMI",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Stable}, Doc: docStable},
	Stable4096: {Name: "stable_4096_ms", Unit: "ms", Label: "Stable, 4096 pixels",
		Short: "No frame with more changed pixels follows",
		Method: "the frame after the last with more than 4096 pixels whose luma differs from the frame " +
			"before by the step or more",
		Source: "Eideticker, camera",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Stable}, Doc: docStable},
	StableEntropy: {Name: "stable_entropy_ms", Unit: "ms", Label: "Stable, by entropy",
		Short: "Eideticker's rule for cameras",
		Method: "the frame after the last whose histogram's entropy (768 bins, bits) is more than 0.05 " +
			"from the mean of it and the 5 before",
		Source: "Eideticker 2013, as published: its code divides by 6",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Stable}, Doc: docStable},
	StableCamera: {Name: "stable_camera_ms", Unit: "ms", Label: "Stable, for cameras",
		Short: "Noise, flicker and exposure taken out",
		Method: "the frame after the last in which the mean of one of 48 × 36 cells differs from that " +
			"of the last 30 frames by more than 7 times its noise there, and 1.2 grey levels, exposure and " +
			"flicker taken out",
		Source: "ours",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Stable}, Doc: docStable},
	Instability: {Name: "layout_instability", Label: "Layout instability",
		Short: "What moved without an input, as Cumulative Layout Shift",
		Method: "largest sum of the scores of a session: frames at most 1 s apart, 5 s in all; a score " +
			"is impact × distance of pieces of 32 pixels that stand elsewhere than in the frame before, " +
			"without what moves within 500 ms of an input",
		Source: "Cumulative Layout Shift, from pixels",
		Better: Lower, Scope: OfLoad, Groups: []string{Shift}, Doc: docShift},
	InstabilityWorst: {Name: "layout_instability_worst", Label: "Layout instability, worst frame",
		Short:  "What moved in one frame without an input",
		Method: "score of the worst frame",
		Source: "W3C, Layout Instability, from pixels",
		Better: Lower, Scope: OfLoad, Groups: []string{Shift}, Doc: docShift},
	KeyColour: {Name: "key_colour_percent", Unit: "%", Label: "Commonest colour",
		Short: "Its share of the last picture",
		Method: "share of the commonest colour of the final frame; colours in 5 bits a channel, " +
			"neighbours counted with the commoner one",
		Better: Neither, Scope: OfLoad, Groups: []string{Colours}, Doc: docColours},
	KeyColours: {Name: "key_colours_percent", Unit: "%", Label: "Eight commonest colours",
		Short:  "Their share of the last picture",
		Method: "share of the eight commonest colours of the final frame together",
		Better: Neither, Scope: OfLoad, Groups: []string{Colours}, Doc: docColours},
	Hero: {Name: "hero_ms", Unit: "ms", Label: "Painted",
		Short:  "From when the element stays as it is",
		Method: "frame from which the element's rectangle, which the page reported, stays as it is at the end",
		Source: "browsertime's hero elements, which take the first frame that resembles the end",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Paint}, Doc: docPaint},
	LargestPainted: {Name: "largest_painted_ms", Unit: "ms", Label: "Largest painted",
		Short:  "From when the largest paint stays as it is",
		Method: "frame from which the rectangle of the largest contentful paint, which the page reported, stays as it is at the end",
		Source: "browsertime",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Paint}, Doc: docPaint},
	LastPainted: {Name: "last_painted_ms", Unit: "ms", Label: "Last painted",
		Short:  "The last of the elements that the page reported",
		Method: "the last of the elements whose rectangles the page reported",
		Source: "browsertime's LastPaintedHero",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Paint}, Doc: docPaint},
	WindowFirstChange: {Name: "window_first_change_ms", Unit: "ms", Label: "Window, first change",
		Short:  "Something of the window appears",
		Method: "first visual change, over the window's final rectangle",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Window}, Doc: docWindow},
	WindowLastChange: {Name: "window_last_change_ms", Unit: "ms", Label: "Window, last change",
		Short:  "Nothing in the window changes any more",
		Method: "last visual change, over the window's final rectangle",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Window}, Doc: docWindow},
	WindowStable: {Name: "window_stable_ms", Unit: "ms", Label: "Window, looks finished",
		Short:  "No large change of the window comes after",
		Method: "time to stable, over the window's final rectangle",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Window}, Doc: docWindow},
	WindowSpeedIndex: {Name: "window_speed_index_ms", Unit: "ms", Label: "Window, SpeedIndex",
		Short:  "Mean time to appear, over the window",
		Method: "SpeedIndex over the window's final rectangle, from the start frame",
		Better: Lower, Scope: OfLoad, Groups: []string{Window}, Doc: docWindow},
	WindowPixels: {Name: "window_pixels", Unit: "pixels", Label: "Window, pixels",
		Short:  "Of what opened",
		Method: "the box of the largest connected part that differs between the first and the last frame",
		Better: Neither, Scope: OfLoad, Groups: []string{Window}, Doc: docWindow},
	InputToChange: {Name: "input_to_change_ms", Unit: "ms", Label: "Input to change",
		Short:  "Until the first pixel changed",
		Method: "from the input to the first frame with a changed pixel after it",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Response}, Doc: docWindow},
	InputToSettled: {Name: "input_to_settled_ms", Unit: "ms", Label: "Input to settled",
		Short:  "Until nothing changed any more",
		Method: "from the input to the last change before the region is still",
		Better: Lower, Scope: OfLoad, Instant: true, Groups: []string{Response}, Doc: docWindow},
	CodeFrames: {Name: "code_frames", Unit: "frames", Label: "Frame codes",
		Short:  "Animation frames that reached the screen",
		Method: "frames that show a new frame code",
		Better: Neither, Scope: OfLoad, Groups: []string{Codes}, Doc: docCodes},
	CodeSkipped: {Name: "code_skipped", Unit: "frames", Label: "Frame codes, missing",
		Short:  "Animation frames that no picture shows",
		Method: "animation frames of the page that no captured frame shows, by the counter",
		Better: Lower, Scope: OfLoad, Groups: []string{Codes}, Doc: docCodes},
	CodeBroken: {Name: "code_broken_frames", Unit: "frames", Label: "Frame codes, broken",
		Short:  "Torn or covered",
		Method: "frames whose code does not agree with its checksum: torn or covered",
		Better: Lower, Scope: OfLoad, Groups: []string{Codes}, Doc: docCodes},
	CodeClock: {Name: "code_clock_ms", Unit: "ms", Label: "Start of the page's clock",
		Short: "When performance.now() was 0",
		Method: "when the page's clock was 0, between bounds: a frame is taken after its code was " +
			"drawn, and a code is on the screen within 250 ms",
		Better: Neither, Scope: OfLoad, Groups: []string{Codes}, Doc: docCodes},
	ProcessorTime: {Name: "processor_ms", Unit: "ms", Label: "Processor time",
		Short: "What the browser computed", Says: "The browser computed for",
		Method: "processor time of all processes of the browser from the input to the last visual change, by the " +
			"kernel's clocks; a reading at either end counts by the share of it that lies within",
		Better: Lower, Scope: OfLoad, Groups: []string{Machine}, Doc: docMachine},
	ProcessorWait: {Name: "processor_wait_ms", Unit: "ms", Label: "Waits for a processor",
		Short: "How long the browser's main threads could have run", Says: "The browser's main threads waited for a processor for",
		Method: "sum of the run-queue delays (/proc/PID/schedstat) of the main threads of the browser's processes, over the same time",
		Better: Lower, Scope: OfLoad, Groups: []string{Machine}, Doc: docMachine},
	MemoryPeak: {Name: "memory_peak_mb", Unit: "MB", Label: "Memory, peak",
		Short: "The most that the browser had in memory", Says: "The browser had in memory at most",
		Method: "largest sum over the browser's processes of what they share with no file and no other (/proc/PID/statm), with " +
			"what the largest of them shares counted once, over the same time; 1 MB is 1,000,000 bytes",
		Better: Lower, Scope: OfLoad, Groups: []string{Machine}, Doc: docMachine},
	MainWork: worked(MainWork), ScriptWork: worked(ScriptWork), LayoutWork: worked(LayoutWork), PaintWork: worked(PaintWork),
	TaskClock: counted(TaskClock), Cycles: counted(Cycles),
	Instructions:    counted(Instructions),
	CacheMisses:     counted(CacheMisses),
	BranchMisses:    counted(BranchMisses),
	ContextSwitches: counted(ContextSwitches),
	Migrations:      counted(Migrations),
	PageFaults:      counted(PageFaults),
	Energy:          counted(Energy), MeanChanges: meanChanges(),
}
