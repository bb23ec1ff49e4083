package verdict

import (
	"path"
	"strings"

	"eidetic/internal/lab"
)

// differences says what each arm has that the other has not, from the plan of the run.
func differences(run *lab.Run) (control, treatment string) {
	a, b := armOf(run, lab.Control), armOf(run, lab.Treatment)
	var left, right []string
	add := func(what, x, y string) {
		if x != y {
			left, right = append(left, what+" "+clip(x)), append(right, what+" "+clip(y))
		}
	}
	add("link", a["link"], b["link"])
	add("page", a["page"], b["page"])
	if a["page"] == b["page"] {
		x, y := recording(a["archive"]), recording(b["archive"])
		if x == y && a["archive"] != b["archive"] {
			x, y = a["archive"], b["archive"]
		}
		add("recording", x, y)
	}
	if left == nil {
		return "", "the same as the control"
	}
	return strings.Join(left, ", "), strings.Join(right, ", ")
}

// armOf finds an arm in the plan, as it is in memory or came from a file.
func armOf(run *lab.Run, name string) map[string]string {
	out := map[string]string{}
	arms, _ := run.Plan["arms"].([]any)
	for _, one := range arms {
		arm, _ := one.(map[string]any)
		if arm["name"] != name {
			continue
		}
		for _, key := range []string{"page", "archive", "link"} {
			out[key], _ = arm[key].(string)
		}
	}
	return out
}

// recording names an archive by its file, and one that another run made by that run.
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

// clip keeps what a person wrote to the length of a label.
func clip(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
