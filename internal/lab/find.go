package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseFind reads Plan.Find: a difference in ms, or in percent of the control; 0 for "".
func ParseFind(text string) (value float64, percent bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	number, percent := strings.CutSuffix(text, "%")
	if !percent {
		var ms bool
		if number, ms = strings.CutSuffix(text, "ms"); !ms {
			return 0, false, fmt.Errorf("%q: a difference in ms or in percent, such as 10ms or 1%%", text)
		}
	}
	value, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(value >= 0.01 && value <= 60_000) || percent && value > 100 {
		return 0, false, fmt.Errorf("%q: from 0.01 to 60000 ms, or to 100 %%, such as 10ms or 1%%", text)
	}
	return value, percent, nil
}
