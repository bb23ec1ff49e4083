package execute

import (
	"context"

	"eidetic/control/recipe"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// browserPackage is the package of the device's browser; "" where adb does not start it.
func (c PluggedConfig) browserPackage() string {
	r, err := recipe.Find(c.Recipe)
	if err != nil || len(c.Fresh) > 0 || !c.isPhone(r) {
		return ""
	}
	return r.Package
}

// sees says whether the processes of every program that the plan measures are seen: by adb, if their package is known.
func (c PluggedConfig) sees(p plan.Checked) bool {
	for _, a := range p.Every() {
		if c.Controls.ADB == "" || a.App != nil && a.App.Package == "" || a.App == nil && c.browserPackage() == "" {
			return false
		}
	}
	return true
}

// sampler is experiment.Runner's Sample: it reads the processes of the app of an arm, or of the browser.
func (a *apps) sampler(browser string) func(hz float64, threads bool) (end func() (lab.Sampled, []lab.ProcessSample)) {
	return func(hz float64, threads bool) func() (lab.Sampled, []lab.ProcessSample) {
		name := browser
		if a.app != nil {
			name = a.packageOf()
		}
		ctx := context.Background() // the trial ends it, also if the run is stopped
		found, cancel := context.WithTimeout(ctx, keyLimit)
		defer cancel()
		phone, err := a.phone(found)
		if err != nil {
			return func() (lab.Sampled, []lab.ProcessSample) { return lab.Sampled{Hz: hz, Lacks: err.Error()}, nil }
		}
		return phone.Sample(ctx, name, hz, threads, clock)
	}
}
