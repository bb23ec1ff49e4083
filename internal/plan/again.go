package plan

import (
	"fmt"
	"reflect"
	"slices"

	"eidetic/internal/lab"
)

// Again is a run's plan as somebody would say it to have the same once more: without what the box noted in it, and
// without what it filled in and would fill in again.
func Again(p lab.Plan) lab.Plan {
	p.From, p.Scope, p.Opened, p.Live = nil, "", nil, false
	forgetDefaults(reflect.ValueOf(&p).Elem())
	if c := (&Checked{Plan: p}); p.CheckCells() == nil && p.Timing == lab.TimingRecorded {
		if c.fill(); !c.recordsTwo() {
			p.Timing = "" // elsewhere that means something else
		}
	}
	if p.Recordings == usualRecordings && p.Timing == lab.TimingRecorded {
		p.Recordings = 0
	}
	usual := p
	usual.Covariates = nil
	if filled, err := read(Request{Plan: usual}, Options{}); err == nil && slices.Equal(filled.Covariates, p.Covariates) {
		p = usual
	}
	forgetMatch(&p.Arm)
	if t := p.Treatment; t != nil {
		own := *t
		forgetMatch(&own)
		forgetDefaults(reflect.ValueOf(&own).Elem())
		for _, same := range []struct {
			of   *string
			than string
		}{{&own.Page, p.Page}, {&own.Link, p.Link}, {&own.Inject, p.Inject}, {&own.Process, p.Process}} {
			if *same.of == same.than {
				*same.of = ""
			}
		}
		if own.Page == "" && own.Archive == p.Archive { // another page does not have it
			own.Archive = ""
		}
		forgetAppPage(&own)
		p.Treatment = &own
	}
	forgetAppPage(&p.Arm)
	return p
}

// forgetMatch empties how an arm's requests match, where the run records and so chooses the same again.
func forgetMatch(a *lab.Arm) {
	if a.Archive == "" && a.Match == lab.NormalMatch {
		a.Match = ""
	}
}

// forgetAppPage empties a page that only stands for the arm's app.
func forgetAppPage(a *lab.Arm) {
	if lab.IsAppPage(a.Page) {
		a.Page = ""
	}
}

// forgetDefaults empties the fields that have the value of their tag "default".
func forgetDefaults(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if usual, ok := field.Tag.Lookup("default"); ok && fmt.Sprint(v.Field(i).Interface()) == usual {
			v.Field(i).SetZero()
		}
		if field.Anonymous {
			forgetDefaults(v.Field(i))
		}
	}
}
