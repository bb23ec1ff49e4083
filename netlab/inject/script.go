package inject

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var (
	//go:embed script.js
	scriptSource string
	//go:embed messages.js
	messagesSource string
)

// Script is the script for one set of options, ready to be put into pages.
type Script struct {
	text string // one line of ASCII, an expression statement
	page string // text, and after it what only documents get
	hash string // for CSP: 'sha256-…' of page
}

// arguments are the parameters of script.js.
type arguments struct {
	Seed [4]int32 `json:"seed"`
	Date *int64   `json:"date"` // ms since 1970, null to leave Date alone
	Path string   `json:"path"`
	// Dialog is what is answered to a page's dialogues; "" shows them.
	Dialog string `json:"dialog"`
}

// messagesPlace is the line of script.js in whose place messages.js stands if it is wanted.
const messagesPlace = "// HERE messages.js\n"

// NewScript renders the script. It returns nil when the options switch it off.
func NewScript(o Options) *Script {
	if o.Off {
		return nil
	}
	a := arguments{Path: BoxPath, Dialog: o.Dialog}
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
	source := scriptSource
	if o.Messages {
		source = strings.Replace(source, messagesPlace, messagesSource, 1)
	}
	s := &Script{text: compact(source) + "(" + string(args) + ");" + compact(o.After)}
	if s.page = s.text; o.More != "" {
		s.page += "\n" + o.More
	}
	sum := sha256.Sum256([]byte(s.page))
	s.hash = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return s
}

// maxMore bounds a script of somebody's own: it is put into every document.
const maxMore = 256 << 10

// CheckScript returns an error for a script that cannot be put into every document: in any
// charset, in HTML as in XHTML.
func CheckScript(text string) error {
	if strings.TrimSpace(text) == "" {
		return errors.New("the script is empty")
	}
	if len(text) > maxMore {
		return fmt.Errorf("the script has %d bytes; at most %d KiB", len(text), maxMore>>10)
	}
	for n, line := range strings.Split(text, "\n") {
		for _, r := range line {
			if r >= 0x80 || r < ' ' && r != '\t' && r != '\r' {
				return fmt.Errorf("line %d: %q: a document may have any charset, so write other characters than ASCII as \\u escapes", n+1, r)
			}
		}
		for _, bad := range []string{"</script", "<script", "<!--", "]]>"} {
			if strings.Contains(strings.ToLower(line), bad) {
				return fmt.Errorf("line %d: %s would end or change the element that the script is put into: write it as \"<\" + %q", n+1, bad, bad[1:])
			}
		}
	}
	return nil
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
