package lab

import "time"

// Stage says how a replayed request was matched to an exchange.
type Stage string

// The stages, from the most certain match to none.
const (
	StageExact      Stage = "exact"      // the only exchange with this method, URL and body
	StageSequence   Stage = "sequence"   // the n-th of several exchanges with this method, URL and body
	StageNormalised Stage = "normalised" // equal without the volatile parts
	StageFuzzy      Stage = "fuzzy"      // the most similar exchange, at or above the threshold
	StageMiss       Stage = "miss"       // no exchange was similar enough
	StageLive       Stage = "live"       // fetched from the origin (recording, or a miss policy that allows it)
	StageBox        Stage = "box"        // answered by the box itself: set-up pages, annotations, captive-portal probes
)

// Served is one line of a trial's replay log: a request, its response, and how it was matched.
type Served struct {
	Time     Time   `json:"time_ns"` // arrival of the request header
	Client   string `json:"client"`  // the device's address
	Method   string `json:"method"`
	URL      string `json:"url"`
	Protocol string `json:"protocol"` // between device and box: "http/1.1", "h2", "h3"

	Stage    Stage   `json:"stage"`
	Score    float64 `json:"score"` // 1 for exact, the similarity for fuzzy, 0 for a miss
	Exchange string  `json:"exchange,omitempty"`
	// Differs names what differed from the recorded request: "query cb: 1 → 9".
	Differs []string `json:"differs,omitempty"`
	// Why says why what differs was accepted, or why a miss was not answered.
	Why string `json:"why,omitempty"`
	// RunnerUp is the next best exchange of a fuzzy match, and the nearest one of a miss.
	RunnerUp string `json:"runner_up,omitempty"`
	// Rule is the flags of appliance archive edit that make a miss match its RunnerUp, if a rule can: right where what
	// differs cannot change the answer.
	Rule string `json:"rule,omitempty"`
	// Filled is set if the exchange is none of the recording but was fetched for an earlier miss.
	Filled bool `json:"filled,omitempty"`

	RequestSHA256 string        `json:"request_sha256,omitempty"` // of the request body, if it has one
	Status        int           `json:"status"`
	Bytes         int64         `json:"bytes"`                 // of the response body, as written
	BodySHA256    string        `json:"body_sha256,omitempty"` // of what was written
	FirstByte     time.Duration `json:"first_byte_ns"`         // from Time to the response header
	Duration      time.Duration `json:"duration_ns"`           // from Time to the last byte written
	// AsksPassword is set if a browser that gets this answer asks a person for a password, in a dialogue over the page.
	AsksPassword bool `json:"asks_password,omitempty"`
	// Aborted is set if the device closed the connection before the last byte.
	Aborted bool `json:"aborted,omitempty"`
	// Error says what failed on the box or at the origin.
	Error string `json:"error,omitempty"`
}

// ReplayConfidence is the mean match score of a trial's n requests: 1 for an exact match,
// the similarity for a fuzzy match, 0 for a miss. Requests that the box or an origin
// answered are not counted. It is 1 if n is 0.
func ReplayConfidence(served []Served) (confidence float64, n int) {
	sum := 0.0
	for _, s := range served {
		if s.Stage == StageBox || s.Stage == StageLive {
			continue
		}
		sum += s.Score
		n++
	}
	if n == 0 {
		return 1, 0
	}
	return sum / float64(n), n
}
