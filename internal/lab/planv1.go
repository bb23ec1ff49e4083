package lab

import (
	"encoding/json"
	"fmt"
	"time"
)

// planV1 is the plan in a run.json of the first versions. It differed from a request: it
// had a list of arms, and durations as text.
type planV1 struct {
	Arms []struct {
		Name string `json:"name"`
		Arm
	} `json:"arms"`
	Still     *string `json:"still"`
	Limit     *string `json:"limit"`
	Tolerance *string `json:"tolerance"`
}

// UnmarshalJSON implements json.Unmarshaler. It reads both forms of a plan.
func (p *Plan) UnmarshalJSON(text []byte) error {
	type plain Plan // has no UnmarshalJSON, which would call itself
	if err := json.Unmarshal(text, (*plain)(p)); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	var old planV1
	if err := json.Unmarshal(text, &old); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	for _, arm := range old.Arms {
		switch arm.Name {
		case Control:
			p.Arm = arm.Arm
		case Treatment:
			p.Treatment = &arm.Arm
		}
	}
	for _, field := range []struct {
		name string
		text *string
		unit time.Duration
		to   *float64
	}{
		{"still", old.Still, time.Second, &p.Still}, {"limit", old.Limit, time.Second, &p.Limit},
		{"tolerance", old.Tolerance, time.Millisecond, &p.Tolerance},
	} {
		if field.text == nil {
			continue
		}
		d, err := time.ParseDuration(*field.text)
		if err != nil {
			return fmt.Errorf("plan.%s: %w", field.name, err)
		}
		*field.to = float64(d) / float64(field.unit)
	}
	return nil
}
