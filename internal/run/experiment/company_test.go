package experiment

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
)

// accompany returns a docket of trials on two processors, beside which others took so many.
func accompany(beside ...float64) *docket {
	d := &docket{planned: DefaultTolerance, cores: 2}
	for i, b := range beside {
		d.add(&lab.Trial{Number: i + 1, Blur: &lab.Blur{Link: 1}, Machine: &lab.Machine{Seconds: 1, Busy: b}}, i)
	}
	return d
}

func TestCompany(t *testing.T) {
	for _, test := range []struct {
		name   string
		beside []float64
		valid  string // 1 a trial that counts
		noisy  bool
	}{
		{"one trial is like itself", []float64{1.2}, "1", true},
		{"the first had company", []float64{1.2, 0.1}, "01", false},
		{"a quiet machine", []float64{0.1, 0.12, 0.05, 0.2, 0.07}, "11111", false},
		{"two of six", []float64{0.1, 0.12, 1.3, 1.25, 0.1, 0.08}, "110011", false},
		{"equally busy all the time", []float64{0.9, 0.95, 1, 0.92}, "1111", true},
		{"now and then, all the time", []float64{0.1, 1.1, 0.1, 1.2, 0.1, 1.3, 0.2, 1.4}, "11101010", true},
	} {
		d := accompany(test.beside...)
		got := d.judge()
		valid := ""
		for _, a := range d.attempts {
			if a.Valid {
				valid += "1"
			} else if valid += "0"; !strings.Contains(strings.Join(a.Invalid, ""), "other work beside it") {
				t.Errorf("%s: trial %d does not count because of %q", test.name, a.Number, a.Invalid)
			}
		}
		if valid != test.valid || got.Company.Noisy() != test.noisy {
			t.Errorf("%s: valid %s, noisy %t; want %s, %t (%+v)", test.name, valid, got.Company.Noisy(), test.valid, test.noisy, got.Company)
		}
		if text := Explain(got, nil); (text != "") != test.noisy {
			t.Errorf("%s: explained by %q", test.name, text)
		}
	}
}

// TestCompanyOfAll: a slot for which nothing quieter came keeps the trial with the least company, once no more are
// made.
func TestCompanyOfAll(t *testing.T) {
	d := accompany(0.1, 0.1, 0.1, 1.4)
	d.add(&lab.Trial{Number: 5, Blur: &lab.Blur{Link: 2}, Machine: &lab.Machine{Busy: 1.2}}, 3)
	d.add(&lab.Trial{Number: 6, Blur: &lab.Blur{Link: 2}, Machine: &lab.Machine{Busy: 0.9}, Faults: []string{"a miss"}}, 3)
	if got := d.judge(); d.filled(3) || got.Company.Kept != 0 {
		t.Errorf("while more trials are made, one beside others counts: %+v", got.Company)
	}
	d.giveUp(3)
	got := d.judge()
	if a := d.attempts; !a[4].Valid || a[3].Valid || a[5].Valid || got.Company.Kept != 1 || !got.Company.Noisy() {
		t.Errorf("no more trials are made: valid are %t, %t, %t, kept %d; want the one with the least company and no fault", a[3].Valid, a[4].Valid,
			a[5].Valid, got.Company.Kept)
	}
	if text := Explain(got, nil); !strings.Contains(text, "nothing quieter came") {
		t.Errorf("explained by %q", text)
	}
}

// TestRunKeepsWhatWasQuietAtFirst: a trial that counted when it was made, and does not beside later ones, counts where
// the run has nothing else for its arm.
func TestRunKeepsWhatWasQuietAtFirst(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := world{changes: []time.Duration{time.Second}, busyUntil: time.Second, busyOf: []float64{1.6, 0.2}}
		run := &lab.Run{}
		p := plan()
		p.Trials = 1
		if err := w.runner().Run(t.Context(), p, arms(&w, lab.Control, lab.Treatment), run, folder{root},
			func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if len(run.Trials) != 2 || !run.Trials[0].Valid || !run.Trials[1].Valid || run.Tolerance.Company.Kept != 1 {
			t.Errorf("%+v, %+v; want both trials valid, and one of them kept", run.Trials, run.Tolerance.Company)
		}
	})
}

// TestCompanyIsUnknown: a device at a port has processors of its own, and trials of earlier versions do not say.
func TestCompanyIsUnknown(t *testing.T) {
	d := accompany(0, 2, 0, 2)
	d.cores = 0
	if got := d.judge(); got.Company != nil || !d.attempts[1].Valid {
		t.Errorf("a device at a port is judged by %+v: %v", got.Company, d.attempts[1].Invalid)
	}
	d = accompany(0, 0)
	d.attempts[0].Machine, d.attempts[1].Machine = nil, nil
	if got := d.judge(); got.Company != nil || !d.attempts[0].Valid {
		t.Errorf("trials that do not say are judged by %+v", got.Company)
	}
}

// TestCompanyIsBlind: the rule sees neither arms nor values nor the order.
func TestCompanyIsBlind(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		beside := make([]float64, 4+random.IntN(30))
		for i := range beside {
			beside[i] = random.ExpFloat64() / 3
		}
		one, other := accompany(beside...), accompany()
		one.judge()
		for place, i := range random.Perm(len(beside)) {
			t := lab.Trial{Number: place + 1, Blur: &lab.Blur{Link: 1}, Machine: &lab.Machine{Seconds: 1, Busy: beside[i]}}
			t.Arm = []string{lab.Control, lab.Treatment}[random.IntN(2)]
			other.add(&t, place)
		}
		other.judge()
		valid := map[float64]bool{}
		for _, a := range one.attempts {
			valid[a.Machine.Busy] = a.Valid
		}
		for _, a := range other.attempts {
			if a.Valid != valid[a.Machine.Busy] {
				t.Fatalf("two trials beside %v differ in validity", a.Machine.Busy)
			}
		}
	}
}
