package match

import "fmt"

// Policy says how far a request may differ from the recorded one that answers it. The
// zero value is Normal.
type Policy string

// The policies, from the narrowest. Each accepts what the one before it accepts.
const (
	// Strict accepts the recorded method, URL and body, byte by byte.
	Strict Policy = "strict"
	// Normal also accepts a request whose differences cannot change the answer: values
	// of time and chance, parameters that make no difference in the recording, another
	// order or layout, the next poll of a chain, and any difference where the answer is
	// settled (see settles).
	Normal Policy = "normal"
	// Loose also accepts the most similar request that was recorded.
	Loose Policy = "loose"
)

// ParsePolicy reads the name of a policy; "" is normal.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case "":
		return Normal, nil
	case Strict, Normal, Loose:
		return p, nil
	}
	return "", fmt.Errorf("matching policy %q is none of strict, normal, loose", s)
}
