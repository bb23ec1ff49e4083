package verdict

import (
	"cmp"
	"path"
	"strings"

	"eidetic/internal/lab"
)

// differences describes what differs between the arms, from the run's plan.
func differences(run *lab.Run) (control, treatment string) {
	arms := run.Plan.Arms()
	if len(arms) < 2 {
		return "", sameAsControl
	}
	a, b := arms[0], arms[1]
	var left, right []string
	add := func(what, x, y string) {
		if x != y {
			left, right = append(left, what+" "+lab.Clip(x, 120)), append(right, what+" "+lab.Clip(y, 120))
		}
	}
	add("link", a.Link, b.Link)
	add("matching", a.Match, b.Match)
	add("browser", a.Browser.String(), b.Browser.String())
	add("app", a.App.String(), b.App.String())
	add("state", cmp.Or(a.State, lab.StateCold), cmp.Or(b.State, lab.StateCold))
	add("process", cmp.Or(a.Process, "same"), cmp.Or(b.Process, "same"))
	add("script", cmp.Or(a.Inject, "none"), cmp.Or(b.Inject, "none"))
	if !lab.IsAppPage(a.Page) { // which the app has told
		add("page", a.Page, b.Page)
	}
	if a.Page == b.Page {
		x, y := recording(a.Archive), recording(b.Archive)
		if x == y && a.Archive != b.Archive {
			x, y = a.Archive, b.Archive
		}
		add("recording", x, y)
	}
	if left == nil {
		return "", sameAsControl
	}
	return strings.Join(left, ", "), strings.Join(right, ", ")
}

// sameAsControl describes a treatment that does not differ from the control.
const sameAsControl = "the same as the control"

// recording names an archive by its file, or by the run that made it.
func recording(file string) string {
	switch base := path.Base(file); {
	case file == "":
		return "made for this run"
	case base == "archive.wacz":
		return path.Base(path.Dir(file))
	default:
		return base
	}
}
