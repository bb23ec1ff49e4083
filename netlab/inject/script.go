package inject

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed script.js
var scriptSource string

// Script is the script for one set of options, ready to be put into pages.
type Script struct {
	text string // one line of ASCII, an expression statement
	hash string // for CSP: 'sha256-…' of text
}

// arguments are the parameters of script.js.
type arguments struct {
	Seed [4]int32 `json:"seed"`
	Date *int64   `json:"date"` // ms since 1970, null to leave Date alone
	Mode DateMode `json:"mode"`
	Path string   `json:"path"`
}

// NewScript renders the script. It returns nil when the options switch it off.
func NewScript(o Options) *Script {
	if o.Off {
		return nil
	}
	a := arguments{Mode: o.Mode, Path: BoxPath}
	if a.Mode == "" {
		a.Mode = DateCount
	}
	// The seed's bits are mixed, so that seeds 1 and 2 give unrelated numbers.
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("eidetic seed "), o.Seed))
	for i := range a.Seed {
		a.Seed[i] = int32(binary.BigEndian.Uint32(h[4*i:]))
	}
	if !o.Date.IsZero() {
		ms := o.Date.UnixMilli()
		a.Date = &ms
	}
	args, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("inject: arguments do not marshal: %v", err)) // numbers and strings only
	}
	s := &Script{text: compact(scriptSource) + "(" + string(args) + ");" + compact(o.After)}
	sum := sha256.Sum256([]byte(s.text))
	s.hash = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return s
}

// compact removes comment lines and line breaks, so that the line numbers of a page stay the same.
func compact(source string) string {
	var b strings.Builder
	for _, line := range strings.Split(source, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "//") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Text returns the script itself.
func (s *Script) Text() string { return s.text }
