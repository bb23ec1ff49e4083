package truth

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

func somePlan() Plan {
	return Plan{AA: 10, AAPairs: 20, Delays: []int{10, 20, 30}, Repeats: 3, DelayPairs: 20, Link: "cable", Still: time.Second, Seed: 1}
}

// Equal and delayed experiments take turns, and each has a seed and a name of its own.
func TestExperiments(t *testing.T) {
	all := somePlan().Experiments()
	names, seeds, byDelay := map[string]bool{}, map[uint64]bool{}, map[int]int{}
	for _, e := range all {
		names[e.Name], seeds[e.Seed] = true, true
		byDelay[e.Delay]++
	}
	if len(names) != len(all) || len(seeds) != len(all) {
		t.Errorf("%d experiments have %d names and %d seeds", len(all), len(names), len(seeds))
	}
	if d := cmp.Diff(map[int]int{0: 10, 10: 3, 20: 3, 30: 3}, byDelay); d != "" {
		t.Error("experiments by delay", d)
	}
	if n := somePlan().Trials(); n != 760 {
		t.Errorf("Trials() = %d, want 760", n)
	}
	if all[0].Delay != 0 || all[3].Delay != 10 || all[len(all)-1].Delay != 30 {
		t.Errorf("Experiments() = %v; want an A/A experiment first, 10 ms fourth and 30 ms last", all)
	}
	for _, bad := range []Plan{{}, {AA: 1, AAPairs: 5}, {AA: 1, AAPairs: 6, Delays: []int{100}}, {AA: 1, AAPairs: 6, Repeats: 1, DelayPairs: 2}} {
		if bad.Validate() == nil {
			t.Errorf("Validate() of %+v = nil, want an error", bad)
		}
	}
}

// trials makes n trials of A/A experiments, one experiment after the other, with the same noise.
func trials(n int, load func(i int) float64) (all []Trial) {
	for i := range n {
		v := load(i)
		one := Trial{
			Experiment: fmt.Sprintf("aa-%02d", i/40+1),
			Number:     i%40 + 1,
			Arm:        lab.Control,
			Block:      i%40/10 + 1,
			Valid:      true,
			Seconds:    4,
			Steal:      1,
			Wall:       time.Unix(int64(i), 0),
			Metrics:    map[string]Value{},
		}
		for _, g := range metric.Guards() {
			low, high := v-8, v+8
			one.Metrics[g.String()] = Value{v, &low, &high}
		}
		all = append(all, one)
	}
	return all
}

// A resampled experiment is a stretch of trials as they came, in blocks that hold
// as many of each arm, in an order that is another one each time.
func TestDraw(t *testing.T) {
	data := trials(100, func(i int) float64 { return float64(i) })
	data[7].Valid = false
	data[8].Delay = 10
	slices.Reverse(data) // the order of the file does not matter
	pool := NewPool(data)
	if len(pool.Trials) != 98 {
		t.Fatalf("%d trials are in the pool, want 98", len(pool.Trials))
	}
	r := rand.New(rand.NewPCG(1, 2))
	orders, starts := map[string]bool{}, map[float64]bool{}
	for range 200 {
		drawn, err := pool.Draw(r, 10)
		if err != nil {
			t.Fatal(err)
		}
		order, count := "", map[string]int{}
		for i, trial := range drawn {
			order += trial.Arm[:1]
			count[fmt.Sprint(trial.Arm, trial.Block)]++
			value := func(i int) float64 { return drawn[i].Metrics["speed_index_ms"].Value }
			if i > 0 && value(i) != value(i-1)+1 && value(i) != 9 {
				t.Fatalf("trial %v follows trial %v", value(i), value(i-1))
			}
			if i > 0 && trial.Block < drawn[i-1].Block || trial.Number != i+1 {
				t.Fatalf("trial %d is number %d of block %d", i, trial.Number, trial.Block)
			}
		}
		if d := cmp.Diff(map[string]int{"control1": 5, "control2": 5, "treatment1": 5, "treatment2": 5}, count); d != "" {
			t.Fatal("trials of arm and block", d)
		}
		orders[order], starts[drawn[0].Metrics["speed_index_ms"].Value] = true, true
	}
	if len(orders) < 180 || len(starts) < 50 {
		t.Errorf("%d orders and %d starts in 200 draws, want more", len(orders), len(starts))
	}
	if _, err := pool.Draw(r, 50); err == nil {
		t.Error("Draw() of 50 pairs from 98 trials = nil, want an error")
	}
}

// With noise that is known the false alarms are as many as they should be, a shift
// is found as often as it must be, and the intervals hold the truth.
func TestEvaluate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var noise []float64
	d := &Data{Plan: somePlan(), Trials: trials(400, func(i int) float64 {
		noise = append(noise, 20*r.NormFloat64())
		return 1000 + noise[i] + 200*math.Sin(float64(i)/30) // and drift
	})}
	for i := range d.Trials { // half of the noise's variance was known before
		d.Trials[i].Before = map[string]float64{lab.CovariateMeter: noise[i] + 20*r.NormFloat64()}
		if i%2 == 1 {
			d.Trials[i].Arm = lab.Treatment
		}
	}
	e, err := Evaluate(t.Context(), d, Options{Resamples: testlab.Repeat(8, 20), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, pairs := range sizes() {
		c, ok := e.cell(ours, metric.FirstChange, pairs)
		if !ok {
			t.Fatalf("there is no cell of %d pairs", pairs)
		}
		_, high := band(c.N, 0.05)
		if c.FalseAlarms > high+2 {
			t.Errorf("%d pairs: %d of %d false alarms, want at most %d", pairs, c.FalseAlarms, c.N, high)
		}
		if share := float64(c.Covered) / float64(c.Intervals); share < 0.8 {
			t.Errorf("%d pairs: %.2f of the intervals hold the truth", pairs, share)
		}
		if pairs == 50 && (c.Power(30) < 0.99 || c.Power(1) > 0.3 || c.Smallest(0.8) < 5 || c.Smallest(0.8) > 20) {
			t.Errorf("50 pairs: 30 ms are found in %.2f, 1 ms in %.2f, and %.1f ms in 0.8", c.Power(30), c.Power(1), c.Smallest(0.8))
		}
	}
	if with, without := cellOf(t, e, ours), cellOf(t, e, unadjusted); with.Smallest(0.8) >= without.Smallest(0.8) {
		t.Errorf("%.1f ms are found with covariates and %.1f ms without; want less with them", with.Smallest(0.8), without.Smallest(0.8))
	}
	if welch, _ := e.cell("Welch's t", metric.FirstChange, 50); welch.Smallest(0.8) < 20 {
		t.Errorf("Welch's t finds %.1f ms in spite of the drift, which is hardly so", welch.Smallest(0.8))
	}
	if len(e.Real) != 10 || len(e.Verdicts) != 3 || len(e.Spread) != 3 || e.Spread[0].WithinBlocks > 60 || e.Spread[0].Deviation < 50 ||
		e.Spread[0].Adjusted < 10 || e.Spread[0].Adjusted > 0.85*e.Spread[0].WithinBlocks {
		t.Errorf("%d real experiments, %d sizes of verdicts, spread %+v", len(e.Real), len(e.Verdicts), e.Spread)
	}
	for _, markdown := range []bool{false, true} {
		var text bytes.Buffer
		if err := e.Print(&text, markdown); err != nil || !strings.Contains(text.String(), "False alarms") {
			t.Errorf("Print(%v): %v, %d bytes", markdown, err, text.Len())
		}
	}
	for _, line := range e.Results() {
		if math.IsNaN(line.Value) || math.IsInf(line.Value, 0) || line.Name == "" || line.Unit == "" {
			t.Errorf("a result that is no JSON, or says nothing: %+v", line)
		}
	}
}

// cellOf is a rule's cell of the first change with most pairs.
func cellOf(t *testing.T, e *Evaluation, rule string) Cell {
	t.Helper()
	c, ok := e.cell(rule, metric.FirstChange, 50)
	if !ok {
		t.Fatalf("there is no cell of %s", rule)
	}
	return c
}

func TestBand(t *testing.T) {
	if low, high := band(200, 0.05); low != 4 || high != 16 { // R: qbinom(c(.025,.975),200,.05)
		t.Errorf("band(200, 0.05) = %d, %d; want 4, 16", low, high)
	}
	if low, high := band(10, 0.05); low != 0 || high != 2 {
		t.Errorf("band(10, 0.05) = %d, %d; want 0, 2", low, high)
	}
}

// Open drops an incomplete line, which a killed program leaves, and keeps the others.
func TestDataGoOn(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1, 0)
	open := func(p Plan) (*Data, string) {
		t.Helper()
		d, aside, err := Open(dir, p, now)
		if err != nil {
			t.Fatal(err)
		}
		return d, aside
	}
	d, _ := open(somePlan())
	for _, one := range trials(3, func(i int) float64 { return float64(i) }) {
		if err := d.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Open(dir, somePlan(), now); err == nil {
		t.Error("a second Open() of the same data = nil, want an error")
	}
	d.Close()
	name := filepath.Join(dir, trialsFile)
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content[:len(content)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	if read, err := Read(dir); err != nil || len(read.Trials) != 2 {
		t.Errorf("Read() of a cut-off line: %v, %v; want 2 trials", read, err)
	}
	d, aside := open(somePlan())
	if aside != "" || len(d.Trials) != 2 {
		t.Errorf("opened again: %d trials, put aside %q; want 2, none", len(d.Trials), aside)
	}
	again, third := d.Trials[0], d.Trials[0]
	again.Valid, third.Number = false, 3
	for _, one := range []Trial{again, third} { // the first is judged anew
		if err := d.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	d.Close()
	if read, err := Read(dir); err != nil || len(read.Trials) != 3 || read.Of("aa-01")[0].Valid {
		t.Errorf("Read() = %v, %v; want 3 trials, the first one not valid any more", read, err)
	}
	other := somePlan()
	other.Link = "lte"
	d, aside = open(other)
	defer d.Close()
	if _, err := os.Stat(aside); err != nil || len(d.Trials) != 0 {
		t.Errorf("another plan: %d trials, the old ones in %q (%v)", len(d.Trials), aside, err)
	}
}

func TestTrialIsKept(t *testing.T) {
	low, high := 1.0, 2.0
	from := &lab.Trial{
		Number:       3,
		Arm:          lab.Treatment,
		Block:        2,
		Invalid:      []string{"late"},
		Faults:       []string{"late"},
		Blur:         &lab.Blur{Link: 3},
		Before:       map[string]float64{lab.CovariateMeter: 60},
		Measurements: []lab.Measurement{{Name: "a_ms", Value: 1.5, Unit: "ms", Low: &low, High: &high}},
	}
	if d := cmp.Diff(from, FromLab(Experiment{Name: "x"}, from).Lab()); d != "" {
		t.Error(d)
	}
}

// Both arms' bodies have equal lengths, and pieces at equal times, whatever the delay.
func TestWithDelay(t *testing.T) {
	const page = "https://www.shop.test/"
	answer := func(url, coding, text string, cuts ...int) *lab.Exchange {
		e := &lab.Exchange{Method: "GET", URL: url, Status: 200, Response: lab.Message{Header: []lab.HeaderField{
			{Name: "Content-Encoding", Value: coding}, {Name: "content-length", Value: "1"}}}}
		var body bytes.Buffer
		w, err := encoder(&body, coding)
		if err != nil {
			t.Fatal(err)
		}
		from, coded := 0, 0
		for i, cut := range append(cuts, len(text)) {
			if _, err := w.Write([]byte(text[from:cut])); err != nil {
				t.Fatal(err)
			}
			flush := w.Flush
			if cut == len(text) {
				flush = w.Close
			}
			if err := flush(); err != nil {
				t.Fatal(err)
			}
			e.Chunks = append(e.Chunks, lab.Chunk{At: time.Duration(i), Bytes: body.Len() - coded})
			from, coded = cut, body.Len()
		}
		e.Response.Body = body.Bytes()
		return e
	}
	document := "<script>\nwindow.shop = { a: 1 };\n</script><p>" + strings.Repeat("text ", 100)
	a := archive.New([]*lab.Exchange{
		answer(page, "br", document, 50, 200),
		answer(page+"js/app.js", "zstd", "const show = () => hero.classList.add('shown');\nshow();\n"),
		answer(page+"js/other.js", "gzip", "1"),
	}, nil, nil, archive.CreateOptions{})
	var lengths [][]int
	for _, ms := range []int{0, 30} {
		edited, err := WithDelay(a, page, ms)
		if err != nil {
			t.Fatal(err)
		}
		var ends []int
		for i, e := range edited.Exchanges() {
			text, ended, err := pieces(e, e.Response.Get("Content-Encoding"))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, ended...)
			want := fmt.Sprintf("performance.now() - t < %2d)", ms)
			if got := strings.Contains(string(text), want); got != (i < 2) {
				t.Errorf("%s: it has %q: %v", e.URL, want, got)
			}
			sum := 0
			for _, c := range e.Chunks {
				sum += c.Bytes
			}
			if sum != len(e.Response.Body) || i < 2 && e.Response.Get("Content-Length") != fmt.Sprint(sum) {
				t.Errorf("%s: %d bytes in pieces of %d, said to be %s", e.URL, len(e.Response.Body), sum, e.Response.Get("Content-Length"))
			}
		}
		lengths = append(lengths, ends)
	}
	if d := cmp.Diff(lengths[0], lengths[1]); d != "" {
		t.Error("the ends of pieces differ between delays", d)
	}
	if lengths[0][1]-lengths[0][0] != 150 {
		t.Errorf("the pieces end at %v: the second had 150 characters", lengths[0])
	}
	const other = "https://h.test/app/"
	strange := archive.New([]*lab.Exchange{answer(other, "gzip", "<!doctype html><head><title>a</title></head>")}, nil, nil, archive.CreateOptions{})
	edited, err := WithDelay(strange, other, 20)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := decode(edited.Exchanges()[0].Response.Body, "gzip"); err != nil || !strings.HasPrefix(string(text), "<!doctype html><head><script>{ const t") {
		t.Errorf("another page became %q, %v; want the script at the begin of its head", text, err)
	}
	if _, err := WithDelay(a.With(nil), page, 10); err == nil {
		t.Error("WithDelay() of a recording without the page = nil, want an error")
	}
}
