package archive

import (
	"slices"
	"strings"
	"time"
)

// WorkingSuffix is added to the archive's path while it is being recorded.
const WorkingSuffix = ".warc.gz"

// CreateOptions describe a new recording.
type CreateOptions struct {
	// Software names the recorder, for warcinfo and datapackage.json: "appliance 1.2".
	Software string
	// Wall is the wall-clock time at which the recording starts. Required.
	Wall time.Time
	// Title is for people; empty means the file's name.
	Title string
	// Seed and PageDate are the options of the determinism script during the recording, so that a
	// replay shows pages the same numbers.
	Seed     uint64
	PageDate time.Time
	// Zone is the browser's offset from UTC, "+02:00"; "" if it is unknown, or the browser was the virtual device's.
	Zone string
	// Rules apply when requests are matched.
	Rules []Rule
	// Imported says what the import of another tool's file left out, lacks or changed, a line each.
	Imported []string
	// Lost is how many exchanges, or damaged parts, were left out of what the archive was made of. They
	// lower its quality.
	Lost int
}

// addImported adds a line to Imported, of which there is a bound.
func (o *CreateOptions) addImported(line string) {
	const most = 200
	if line = strings.TrimSpace(oneLine(line)); line != "" && len(o.Imported) < most && !slices.Contains(o.Imported, line) {
		o.Imported = append(o.Imported, line)
	}
}

// Page is a document that a person visited: a line of pages/pages.jsonl.
type Page struct {
	URL   string    `json:"url"`
	Title string    `json:"title,omitempty"`
	Wall  time.Time `json:"ts"`
	// Rest is when the page came to rest, in milliseconds since the start of the recording. What it asked
	// for later, a replay that ends at rest does not ask for. 0 if that is not known.
	Rest float64 `json:"rest_ms,omitempty"`
}

// RestTime is Rest as [lab.Exchange.Start] counts.
func (p Page) RestTime() time.Duration { return time.Duration(p.Rest * float64(time.Millisecond)) }

// DNS is one recorded question and its answer.
type DNS struct {
	Name string `json:"name"` // without a final dot, lower case
	Type string `json:"type"` // "A", "AAAA", "HTTPS", …
	// RCode is "NOERROR", "NXDOMAIN", …; NOERROR without records is NODATA.
	RCode string `json:"rcode"`
	// Records are resource records in zone-file form, as miekg/dns prints
	// them: "www.example.com.\t300\tIN\tA\t192.0.2.1". CNAMEs of the chain included.
	Records []string `json:"records"`
	// Wall is when the answer came; Elapsed is how long it took.
	Wall    time.Time     `json:"wall"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// Server is the resolver that answered, "192.0.2.53:53"; may be empty.
	Server string `json:"server,omitempty"`
}

// Limits bound what a file may contain. The zero value of a field means its default.
type Limits struct {
	File      int64 // bytes of the file, default 8 GiB
	Decoded   int64 // bytes of all records once decompressed, default 4 GiB
	Record    int64 // bytes of the body in one record, default 1 GiB; Header more with its head
	Exchanges int   // default 1,000,000
	Header    int   // bytes of one WARC or HTTP header block, default 1 MiB
	Index     int64 // bytes of one JSON or index file in the zip, default 64 MiB
	Entries   int   // files in the zip, default 10,000
	// Memory is how many bytes of memory the reading may take, for headers, fields, entries and
	// structures as well as for bodies, default MemoryOf(DefaultShare); and Ratio how many times the
	// file's size, besides 64 MiB, default 32.
	Memory int64
	Ratio  int

	// part is the least number of bytes of a WARC that one goroutine reads at a time, default 1 MiB.
	part int64

	budget *budget // of the file that is read
	files  harFiles
}
