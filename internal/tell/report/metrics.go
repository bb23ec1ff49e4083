package report

import (
	"math"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// metric says how a number is shown and explained.
type metric struct {
	Name  string // as in lab.Trial.Metrics
	Label string
	Unit  string
	// Short explains the metric in a few words.
	Short string
	// Says is the beginning of the sentence that ends with the value.
	Says string
	// Method is the definition, used unless the trial's measurement has its own.
	Method string
}

// headline lists the metrics at the top of every report, the most telling first. The
// other metrics follow in the order of the run's summary.
func headline() []metric {
	return []metric{
		{"time_to_stable_ms", "Looks finished", "ms", "No large change comes after", "The page looked finished after",
			"Time from the key press that starts the load to the frame after the last one in which more than 4096 pixels of the content area differ from the frame before by 5 or more " +
				"of 255 steps of luma (Eideticker's stable frame)."},
		{"first_visual_change_ms", "First visual change", "ms", "Something appears", "Something appeared after",
			"Time from the key press that starts the load to the first frame whose content area differs from the start frame's."},
		{"last_visual_change_ms", "Last visual change", "ms", "Nothing moves any more", "Nothing moved any more after",
			"Time from the key press that starts the load to the last frame whose content area differs from the one before it."},
		{"speed_index_ms", "SpeedIndex", "ms", "Mean time to appear, over the whole screen", "SpeedIndex is",
			"Integral over time of the share of the screen that is not yet as in the final frame, from colour histograms, in browsertime's flavour. " +
				"Animation and scrolling make it larger; compare it only with the same flavour."},
		{"unique_fps", "Unique frames", "frames/s", "Frames a second that showed something new", "New pictures came at",
			"Frames whose content area differs from the frame before, divided by the time between first and last visual change."},
	}
}

// ofJourneys lists the metrics that only journeys and their steps have.
func ofJourneys() []metric {
	return []metric{
		{"journey_ms", "Journey", "ms", "Sum of all steps' times to their ends", "The journey took",
			"Sum of the times from the input of each step to the instant since which its end holds."},
		{"first_feedback_ms", "First feedback", "ms", "Something reacts", "Something reacted after",
			"Time from the step's input to the first frame whose content area differs from the step's start picture."},
		{"first_content_ms", "First content", "ms", "What the step leads to begins to appear", "Content appeared after",
			"Time from the step's input to the first frame in which 5 % of the pixels that the step changes are as at its end."},
		{"time_to_end_ms", "Time to end", "ms", "Since when the step's end holds", "The end was reached after",
			"Time from the step's input to the instant since which the conditions of its end hold."},
		{lab.PingGuard, "Response", "ms", "From an input to what it changes first", "The region answered after",
			"Median of the times from the inputs, each at a random phase of the screen, to the first frame whose region differs."},
		{"response_settled_ms", "Response settled", "ms", "From an input to its last change", "The region had settled after",
			"Median of the times from the inputs to the last changed frame before the region was quiet."},
		{"response_p10_ms", "Response, 10 % quantile", "ms", "", "", ""},
		{"response_p90_ms", "Response, 90 % quantile", "ms", "", "", ""},
		{"response_max_ms", "Response, slowest", "ms", "", "", ""},
		{"response_input_share_ms", "Unknown by the input", "ms", "Width of the inputs' intervals", "", ""},
		{"response_source_share_ms", "Unknown by the screen", "ms", "Time between two pictures", "", ""},
		{"response_echo_ms", "Caps Lock's echo", "ms", "What input alone takes", "The keyboard's light answered after",
			"Median of the times from a press of Caps Lock to the device's switching the keyboard's light on."},
		{"response_echo_p90_ms", "Caps Lock's echo, 90 % quantile", "ms", "", "", ""},
		{"idle_fps", "Idle frame rate", "frames/s", "What changes though nothing is done", "Pictures went on changing at", ""},
		{"idle_last_change_ms", "Idle until", "ms", "When the last of it changed", "", ""},
		{"idle_area_percent", "Idle area", "%", "How much of the screen changed at most", "", ""},
	}
}

// ofScreens lists the metrics of moving screens that a plan asks for, in words; their methods come with
// the measurements.
func ofScreens() map[string][2]string {
	return map[string][2]string{
		"animation_fps":                  {"Frame rate", "Pictures a second while something moved"},
		"duplicate_frames":               {"Repeated frames", "Frames that showed nothing new while something moved"},
		"longest_gap_ms":                 {"Longest gap", "Longest time without a new picture"},
		"frame_interval_p50_ms":          {"Frame interval, median", "From picture to picture"},
		"frame_interval_p95_ms":          {"Frame interval, 95 %", "From picture to picture"},
		"frame_interval_p99_ms":          {"Frame interval, 99 %", "From picture to picture"},
		"missed_refreshes":               {"Missed refreshes", "Refreshes that brought no new picture"},
		"missed_refreshes_worst_percent": {"Missed refreshes, worst second", "In the second with the most of them"},
		"jank_count":                     {"Janks", "Intervals longer than the one before, as Chromium counts"},
		"movement_y_px":                  {"Movement down", "How far the picture moved; up is negative"},
		"movement_x_px":                  {"Movement across", "How far the picture moved"},
		"movement_unevenness_px":         {"Unevenness", "How much a frame's step differs from its neighbours'"},
		"movement_overshoot_px":          {"Overshoot", "How far the picture went beyond where it stopped"},
		"input_to_movement_ms":           {"Input to movement", "Until the picture first moved"},
		"input_to_change_ms":             {"Input to change", "Until the first pixel changed"},
		"input_to_settled_ms":            {"Input to settled", "Until nothing changed any more"},
		"blank_sum":                      {"Blank, summed", "Share of the area that was not drawn, over all frames"},
		"blank_most_percent":             {"Blank, worst frame", "Largest share that was not drawn"},
		"blank_mean_percent":             {"Blank, mean", "Mean share that was not drawn"},
		"torn_frames":                    {"Torn frames", "Frames that show parts of two pictures"},
		"torn_run_frames":                {"Torn frames in a row", "The most of them"},
		"torn_percent":                   {"Torn frames, share", "Of the frames that show something new"},
		"blank_longest_frames":           {"Blank, longest", "Until a part of the picture was drawn"},
		"checkerboard":                   {"Checkerboard", "Biggest box of the blank colour, over all frames"},
		"movement_frames":                {"Movement, length", "Frames from the first movement to the last"},
		"movement_zoom":                  {"Zoom", "By how much the picture grew"},
		"movement_speed":                 {"Movement, speed", "Along its path"},
		"movement_longest_step_px":       {"Movement, longest step", "From frame to frame"},
		"stable_2048_ms":                 {"Stable, 2048 pixels", "No frame with more changed pixels follows"},
		"stable_4096_ms":                 {"Stable, 4096 pixels", "No frame with more changed pixels follows"},
		"stable_entropy_ms":              {"Stable, by entropy", "Eideticker's rule for cameras"},
		"stable_camera_ms":               {"Stable, for cameras", "Noise, flicker and exposure taken out"},
		"code_frames":                    {"Frame codes", "Animation frames that reached the screen"},
		"code_broken_frames":             {"Frame codes, broken", "Torn or covered"},
		"code_skipped":                   {"Frame codes, missing", "Animation frames that no picture shows"},
		"code_clock_ms":                  {"Start of the page's clock", "When performance.now() was 0"},
		"hero_ms":                        {"Painted", "From when the element stays as it is"},
		"largest_painted_ms":             {"Largest painted", "From when the largest paint stays as it is"},
		"last_painted_ms":                {"Last painted", "The last of the elements that the page reported"},
		"visual_readiness_ms":            {"Visual readiness", "From the first change to the last"},
		"key_colours_percent":            {"Eight commonest colours", "Their share of the last picture"},
		"window_pixels":                  {"Window, pixels", "Of what opened"},
		"layout_instability":             {"Layout instability", "What moved without an input, as Cumulative Layout Shift"},
		"layout_instability_worst":       {"Layout instability, worst frame", "What moved in one frame without an input"},
		"key_colour_percent":             {"Commonest colour", "Its share of the last picture"},
		"perceptual_speed_index_ms":      {"Perceptual Speed Index", "Mean time to look like the end"},
		"contentful_speed_index_ms":      {"Contentful Speed Index", "Mean time until edges are there"},
		"speed_index_wpt_ms":             {"SpeedIndex, WebPageTest's flavour", "Mean time to appear"},
		"speedline_index_ms":             {"SpeedIndex, speedline's flavour", "Mean time to appear, as Lighthouse has it"},
	}
}

// describe returns how to show a metric; unknown metrics are described by their name.
func describe(name, unit string) metric {
	if bare, region, ok := strings.Cut(name, lab.RegionMark); ok { // of a region, and maybe of a step
		m := describe(bare, unit)
		m.Name, m.Label = name, m.Label+" ("+region+")"
		return m
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 { // of a step
		m := describe(name[i+1:], unit)
		m.Name, m.Label = name, name[:i]+": "+m.Label
		return m
	}
	for _, m := range ofJourneys() {
		if m.Name == name {
			return m
		}
	}
	for _, m := range headline() {
		if m.Name == name {
			return m
		}
	}
	m := metric{Name: name, Unit: unit}
	stem := name
	for suffix, u := range map[string]string{"_ms": "ms", "_fps": "frames/s", "_percent": "%", "_px": "pixels"} {
		if s, ok := strings.CutSuffix(name, suffix); ok {
			stem = s
			if m.Unit == "" {
				m.Unit = u
			}
		}
	}
	words := strings.ReplaceAll(stem, "_", " ")
	if known, ok := ofScreens()[name]; ok {
		words, m.Short = known[0], known[1]
	} else if words != "" {
		words = strings.ToUpper(words[:1]) + words[1:]
	}
	m.Label, m.Says = words, words+" is"
	return m
}

// number formats v for people: three or four significant digits, thousands separated by a
// narrow space, a true minus.
func number(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 0
	switch a := math.Abs(v); {
	case a == 0 || a >= 100 || unit == "ms" && a >= 10:
	case a >= 10:
		digits = 1
	case a >= 0.1:
		digits = 2
	default:
		digits = 3
	}
	return grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

// precise formats v for tables, with one digit more than number.
func precise(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	digits := 1
	switch a := math.Abs(v); {
	case a > 0 && a < 0.1: // a layout's instability of 0.02 is one to look at
		digits = 4
	case a < 10:
		digits = 2
	}
	return grouped(strconv.FormatFloat(v, 'f', digits, 64))
}

func grouped(s string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		sign, s = "−", rest
	}
	whole, frac, dot := strings.Cut(s, ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(c)
	}
	if dot {
		b.WriteByte('.')
		b.WriteString(frac)
	}
	if strings.Trim(b.String(), "0.") == "" {
		sign = ""
	}
	return sign + b.String()
}

// count formats an integer with its thousands separated.
func count[T int | int64](n T) string { return grouped(strconv.FormatInt(int64(n), 10)) }

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 0:
		return "–"
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	case n < 1_000_000:
		return number(float64(n)/1e3, "") + " kB"
	case n < 1_000_000_000:
		return number(float64(n)/1e6, "") + " MB"
	default:
		return number(float64(n)/1e9, "") + " GB"
	}
}

// millis is the time from zero to t in ms.
func millis(t, zero lab.Time) float64 { return float64(t-zero) / 1e6 }
