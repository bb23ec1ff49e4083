package message

import (
	"strings"

	"eidetic/internal/lab"
)

// OpensDialogue tells whether the fields of a 401 challenge by a scheme for which browsers ask a person for a password,
// in a dialogue over the page (RFC 9110, 11.6.1).
func OpensDialogue(fields []lab.HeaderField) bool {
	for _, f := range fields {
		if !strings.EqualFold(f.Name, "WWW-Authenticate") {
			continue
		}
		for challenge := range strings.SplitSeq(f.Value, ",") {
			scheme, _, _ := strings.Cut(strings.TrimSpace(challenge), " ")
			switch strings.ToLower(scheme) {
			case "basic", "digest", "ntlm", "negotiate":
				return true
			}
		}
	}
	return false
}
