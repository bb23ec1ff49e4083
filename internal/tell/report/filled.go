package report

import (
	"strconv"

	"eidetic/analysis/trace"
	"eidetic/internal/lab"
)

// filledRow is a request that the recording lacked and a trial fetched from its origin.
type filledRow struct {
	Trial         int
	When          string // for people
	At            string // ms since the start of the load
	Method, URL   string
	Status, Bytes string
	Note          string
}

// maxFilled bounds the rows; the trials' logs have all.
const maxFilled = 200

// filledOf lists what trials fetched, and how many requests are not in the list.
func filledOf(run *lab.Run) (list []filledRow, more int) {
	for _, t := range run.Trials {
		more += t.Filled
		zero := trace.ZeroOf(t)
		for _, r := range t.FilledRequests {
			if len(list) == maxFilled {
				break
			}
			at := millis(r.Time, zero)
			row := filledRow{
				Trial: t.Number, When: r.Wall.UTC().Format("15:04:05"), At: precise(at),
				Method: r.Method, URL: r.URL, Status: strconv.Itoa(r.Status), Bytes: count(r.Bytes), Note: r.Error,
			}
			if r.Error != "" {
				row.Status = "–"
			}
			list = append(list, row)
		}
	}
	return list, max(0, more-len(list))
}
