package replay

import (
	"net/http"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
)

// RecordOptions of a Recorder. Clock and Wall are required.
type RecordOptions struct {
	Clock  lab.Clock
	Wall   func() time.Time // wall clock, for the archive's dates
	Inject inject.Options
	// Log gets one line per request, stage "live". It must not block.
	Log func(lab.Served)
	// MaxBody bounds a recorded body in bytes; what is longer still reaches
	// the device and is recorded as truncated. Default 1 GiB.
	MaxBody int64
	// Protocols answers Recorder.Protocols; nil offers h2 and http/1.1 to all.
	Protocols func(host string) []string
}

// Recorder forwards requests to their origins and records the exchanges.
type Recorder struct{}

// NewRecorder records to w what rt fetches. rt must not follow redirects nor
// decompress (http.Transport with DisableCompression); where it connects to,
// and through which resolver, is its business. See [NewTransport].
func NewRecorder(w *archive.Writer, rt http.RoundTripper, o RecordOptions) *Recorder { return nil }

// ServeHTTP fetches from the origin. r.URL must be absolute.
func (c *Recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Protocols returns the ALPN protocols to offer to the device for host.
func (c *Recorder) Protocols(host string) []string { return nil }

// Stats returns the counts so far.
func (c *Recorder) Stats() Stats { return Stats{} }
