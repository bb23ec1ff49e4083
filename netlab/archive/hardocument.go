package archive

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// maxNesting is how deep in lists and objects a HAR may lie in its file.
const maxNesting = 3

// read reads the JSON of a file.
func (hi *harImport) read(file *io.SectionReader) error {
	s, done, err := openJSON(file, hi.limits)
	if err != nil {
		return err
	}
	defer done()
	return hi.documents(s)
}

// documents reads what stands one after the other: a HAR, a list of entries, or an entry on each line.
func (hi *harImport) documents(s *jsonStream) error {
	if err := s.begin(); err != nil {
		return err
	}
	for {
		if err := hi.document(s, 0); err != nil {
			return err
		}
		if more, err := s.another(); !more || err != nil {
			return err
		}
	}
}

// document reads the next value: a HAR, its log, an entry, a list of them, or what has one of them in it.
func (hi *harImport) document(s *jsonStream, depth int) error {
	c, err := s.next()
	switch {
	case err != nil:
		return err
	case c == '[' && depth <= maxNesting:
		hi.isList = hi.isList || depth == 0
		return s.array(func() error { return hi.document(s, depth+1) })
	case c == '{' && depth <= maxNesting:
		return hi.fields(s, depth)
	case c == '"' && depth == 0: // the text of a JSON text
		var text string
		cost, err := s.decode(&text)
		defer s.budget.give(cost)
		if err != nil {
			return err
		}
		return hi.documents(newJSONStream(strings.NewReader(text), s.budget))
	}
	_, _, err = s.value(false)
	return err
}

// fields reads the fields of an object.
func (hi *harImport) fields(s *jsonStream, depth int) error {
	var entry bytes.Buffer // its fields, if it is one
	var found []string
	cost := int64(0)
	defer func() { s.budget.give(cost) }()
	err := s.object(func(name string) error {
		hi.name(name, depth)
		c, err := s.next()
		if err != nil {
			return err
		}
		lower := strings.ToLower(name)
		switch {
		case lower == "log" && c == '{':
			hi.logs++
			return s.object(func(name string) error { return hi.logField(s, name) })
		case lower == "entries" && (c == '[' || c == '{'): // a log without the rest of the file
			hi.logs++
			return hi.logField(s, name)
		case slices.Contains(entryFields(), lower), c == '{' && slices.Contains(charlesObjects(), lower),
			c != '{' && c != '[' && slices.Contains(charlesTexts(), lower):
			raw, more, err := s.value(true)
			found, cost = append(found, lower), cost+more
			begin := ","
			if entry.Len() == 0 {
				begin = "{"
			}
			entry.WriteString(begin + string(marshal(name)) + ":")
			entry.Write(raw)
			return err
		}
		if depth == 0 {
			if isOurs, err := hi.wpr.field(s, name); isOurs || err != nil {
				return err
			}
		}
		return hi.document(s, depth+1)
	})
	if err != nil || !slices.Contains(found, "request") || !slices.Contains(found, "response") {
		return err
	}
	hi.hasEntries = true
	entry.WriteByte('}')
	return hi.entry(s, func(v any) (int64, error) { return s.unmarshal(entry.Bytes(), 0, v) })
}

// entryFields are the fields of an entry that are used, in lower case.
func entryFields() []string {
	return []string{
		"pageref", "starteddatetime", "time", "request", "response", "timings", "serveripaddress", "_resourcetype", "_websocketmessages",
		"_eventsourcemessages", "_eidetic",
	}
}

// name notes a name of a field, from which it is told what else a file is.
// Those deep inside leave room for the ones that follow outside.
func (hi *harImport) name(name string, depth int) {
	const most, longest = 100, 100
	if len(hi.names) < most/(depth+1) && len(name) < longest && !slices.Contains(hi.names, name) {
		hi.names = append(hi.names, name)
	}
}

// logField reads one field of the log.
func (hi *harImport) logField(s *jsonStream, name string) error {
	c, err := s.next()
	if err != nil {
		return err
	}
	switch {
	case strings.EqualFold(name, "entries") && c == '[':
		hi.hasEntries = true
		return s.array(func() error { return hi.entry(s, s.decode) })
	case strings.EqualFold(name, "entries") && c == '{': // by a number or an ID
		hi.hasEntries = true
		return s.object(func(string) error { return hi.entry(s, s.decode) })
	case strings.EqualFold(name, "pages") && c == '[':
		return s.array(func() error { return hi.page(s) })
	case strings.EqualFold(name, "creator") && c == '{':
		return hi.creator(s)
	case name == "_eidetic":
		return hi.own(s)
	}
	_, _, err = s.value(false)
	return err
}
