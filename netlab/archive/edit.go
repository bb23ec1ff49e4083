package archive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Edit is a change of a recorded answer; what is zero stays as it is.
type Edit struct {
	Status int `json:"status,omitempty"`
	// Set holds response header fields, as "Name: value"; a field replaces those of its name.
	Set []string `json:"set,omitempty"`
	// Drop names response header fields.
	Drop []string `json:"drop,omitempty"`
	// Body takes the place of the body, without a content coding; nil keeps the body.
	Body []byte `json:"body,omitempty"`
	// FirstByte is the time to first byte; later chunks move along.
	FirstByte time.Duration `json:"first_byte_ns,omitempty"`
}

// Empty says that the edit changes nothing.
func (c Edit) Empty() bool {
	return c.Status == 0 && len(c.Set)+len(c.Drop) == 0 && c.Body == nil && c.FirstByte == 0
}

// Validate says what of the edit cannot be made.
func (c Edit) Validate() error {
	if c.Status != 0 && (c.Status < 200 || c.Status > 599) {
		return fmt.Errorf("status %d is not a final status (200 … 599)", c.Status)
	}
	if c.FirstByte < 0 {
		return fmt.Errorf("the time to first byte, %v, is negative", c.FirstByte)
	}
	_, err := c.fields()
	return err
}

// fields parses Set.
func (c Edit) fields() (list []lab.HeaderField, err error) {
	for _, s := range c.Set {
		name, value, ok := strings.Cut(s, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, fmt.Errorf("%q is not a header field of the form 'Name: value'", s)
		}
		list = append(list, lab.HeaderField{Name: name, Value: strings.TrimSpace(value)})
	}
	return list, nil
}

// Apply returns a changed copy of an exchange.
func (c Edit) Apply(old *lab.Exchange) (*lab.Exchange, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	add, err := c.fields()
	if err != nil {
		return nil, err
	}
	e, drop := *old, slices.Clone(c.Drop)
	for _, f := range add {
		drop = append(drop, f.Name)
	}
	if c.Status != 0 {
		e.Status, e.Reason = c.Status, ""
	}
	if c.Body != nil {
		drop = append(drop, "Content-Encoding", "Content-Length", "ETag", "Content-MD5", "Digest")
		add = append(add, lab.HeaderField{Name: "Content-Length", Value: strconv.Itoa(len(c.Body))})
		e.Response.Body, e.Truncated, e.Sent = c.Body, "", nil
		e.Chunks = []lab.Chunk{{At: e.FirstByte, Bytes: len(c.Body)}}
	}
	if c.FirstByte > 0 {
		delta := c.FirstByte - e.FirstByte
		e.FirstByte = c.FirstByte
		e.Chunks = slices.Clone(e.Chunks)
		for i := range e.Chunks {
			e.Chunks[i].At = max(e.Chunks[i].At+delta, e.FirstByte)
		}
	}
	kept := slices.DeleteFunc(slices.Clone(e.Response.Header), func(f lab.HeaderField) bool {
		return slices.ContainsFunc(drop, func(name string) bool { return strings.EqualFold(f.Name, name) })
	})
	e.Response.Header = append(kept, add...)
	return &e, nil
}
