package report

import (
	"cmp"
	"fmt"
	"strings"

	"eidetic/internal/lab"
)

// whyPaths are the critical paths of both arms as the template shows them.
type whyPaths struct {
	*lab.CriticalPaths
	Says         string
	Named, Other []whyRow
	Arms         []whyPath
}

// whyPath is the path of a typical trial.
type whyPath struct {
	Name  string
	Path  *lab.Path
	Steps []whyStep
}

type whyStep struct {
	At, Lasts, What, Why string
	Inferred             bool
}

func pathsOf(p *lab.CriticalPaths) *whyPaths {
	if p == nil {
		return nil
	}
	w := &whyPaths{CriticalPaths: p, Says: partingWords(p)}
	for i := range p.Rows {
		row := whyRowOf(&p.Rows[i])
		if row.Named {
			w.Named = append(w.Named, row)
		} else {
			w.Other = append(w.Other, row)
		}
	}
	for _, one := range []struct {
		arm  string
		path *lab.Path
	}{{lab.Control, &p.Control}, {lab.Treatment, &p.Treatment}} {
		if len(one.path.Steps) == 0 {
			continue
		}
		path := whyPath{Name: armName(one.arm), Path: one.path}
		for _, s := range one.path.Steps {
			path.Steps = append(path.Steps, whyStep{At: stamp(s.FromMS), Lasts: stamp(s.ToMS - s.FromMS),
				What: stepWords(s.Kind, s.Group, s.What), Why: s.Why, Inferred: s.Inferred})
		}
		w.Arms = append(w.Arms, path)
	}
	return w
}

// partingWords says in which picture the arms part.
func partingWords(p *lab.CriticalPaths) string {
	if p.Share < 0 {
		return sentence(strings.Join(p.Notes, "; ")) + " So there is no picture that their critical paths could lead to."
	}
	picture := "the first change of the screen"
	if p.Share > 0 {
		picture = fmt.Sprintf("the first picture that is %g %% visually complete", p.Share)
	}
	d := &p.Parting
	return fmt.Sprintf("The arms part at %s: the control shows it after %s ms, the treatment after %s (medians; %s ms, %s to %s).", picture,
		number(d.Control, "ms"), number(d.Treatment, "ms"), signed(d.Shift, "ms"), signed(d.Low, "ms"), signed(d.High, "ms"))
}

// stepWords says what a step of a critical path is.
func stepWords(kind, group, what string) string {
	of := lab.OneLine(what, mostNamedURL)
	about := func(words string) string {
		if of == "" {
			return words
		}
		return words + ": " + of
	}
	switch kind {
	case lab.PathStart:
		return "before the first request"
	case lab.PathSend:
		return about("request on its way to the box")
	case lab.PathWait:
		return about("wait for the first byte")
	case lab.PathReceive:
		return about("transfer")
	case lab.PathDeliver:
		return about("answer on its way to the page")
	case lab.PathWork:
		return about(cmp.Or(group, "work"))
	case lab.PathIdle:
		return about("the page’s thread waits")
	case lab.PathShort:
		return "short steps"
	case lab.PathScreen:
		return "from painting to the picture"
	}
	return about(lab.OneLine(kind, mostNamedURL))
}

// pathWhere says who a step is of.
func pathWhere(kind string) string {
	switch kind {
	case lab.PathWork, lab.PathIdle:
		return "the page’s thread"
	case lab.PathWait:
		return "server"
	case lab.PathSend, lab.PathReceive, lab.PathDeliver:
		return "network"
	}
	return "browser"
}
