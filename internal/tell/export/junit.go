package export

import (
	"cmp"
	"encoding/xml"
	"io"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// The elements of JUnit's XML that build servers agree on. There is no official schema;
// testdata/junit.xsd is ours, of what Jenkins, GitLab and Azure read.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		Time    string       `xml:"time,attr"`
		Failure *junitResult `xml:"failure,omitempty"`
		Error   *junitResult `xml:"error,omitempty"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitResult struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		// Text repeats the message: some servers show only this.
		Text string `xml:",chardata"`
	}
)

// JUnit writes a test suite: a test that the run is done, and one for each guard. A guard
// that got worse has failed; one without an answer is an error.
func JUnit(w io.Writer, s *Source) error {
	run := s.Run
	suite := junitSuite{
		Name: title(run), Time: seconds(run.Elapsed), Timestamp: run.Wall.UTC().Format("2006-01-02T15:04:05"),
		Properties: properties(s),
	}
	for _, c := range checks(run) {
		one := junitCase{Name: c.name, Class: "eidetic." + strings.ReplaceAll(title(run), ".", "_"), Time: "0.000"}
		if c.name == doneName {
			one.Time = suite.Time
		}
		text := strings.Join(append([]string{c.says}, c.more...), "\n")
		switch c.state {
		case good:
			one.Out = text
		case bad:
			one.Failure = &junitResult{c.name + ": " + c.says, cmp.Or(c.kind, lab.Slower), text}
			suite.Failures++
		case open:
			one.Error = &junitResult{c.name + ": " + c.says, lab.Unknown, text}
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, one)
	}
	suite.Tests = len(suite.Cases)
	doc := junitSuites{Name: "Eidetic", Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors, Time: suite.Time, Suite: suite}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// properties says what a suite is of.
func properties(s *Source) []junitProperty {
	run := s.Run
	all := []junitProperty{{"run", run.ID}, {"page", run.Page}, {"link", run.Link.Name}, {"browser", run.Environment.Browser}}
	if c := run.Comparison; c != nil {
		all = append(all, junitProperty{"verdict", c.Verdict}, junitProperty{"headline", c.Headline}, junitProperty{"detail", c.Detail},
			junitProperty{"pairs", strconv.Itoa(c.Pairs)})
	}
	if s.Report != "" {
		all = append(all, junitProperty{"report", s.Report})
	}
	return all
}

func seconds(s float64) string {
	return strconv.FormatFloat(time.Duration(s*float64(time.Second)).Seconds(), 'f', 3, 64)
}
