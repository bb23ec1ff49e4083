package fleet

import (
	"eidetic/internal/lab"
)

// Split divides a plan into what one box carries out: each of its pages, with all users and both arms. A plan of one
// page is one part, and the plan itself. The cells of the parts, one after another, are those of the plan.
func Split(p lab.Plan) []lab.Plan {
	p.On, p.Device = nil, ""
	if len(p.Pages) < 2 {
		return []lab.Plan{p}
	}
	parts := make([]lab.Plan, len(p.Pages))
	for i := range p.Pages {
		parts[i] = p
		parts[i].Pages = p.Pages[i : i+1 : i+1]
	}
	return parts
}
