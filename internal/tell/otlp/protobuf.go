package otlp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of the fields of trace.proto, resource.proto and common.proto.
const (
	fieldResourceSpans = 1 // TracesData, ExportTraceServiceRequest

	fieldResource   = 1 // ResourceSpans
	fieldScopeSpans = 2

	fieldAttributes = 1 // Resource
	fieldKey        = 1 // KeyValue
	fieldValue      = 2
	fieldText       = 1 // AnyValue
	fieldSpans      = 2 // ScopeSpans

	fieldTrace  = 1 // Span
	fieldSpan   = 2
	fieldParent = 4
	fieldName   = 5
	fieldStart  = 7
	fieldEnd    = 8
	fieldStatus = 15
	fieldCode   = 3 // Status

	codeError = 2
)

// leastTag is the smallest first byte of a message: the tag of field 1. The length of a message that is not too large
// begins with a smaller one.
const leastTag = 1 << 3

// readProtobuf reads one message, or many, each with its length before it: in four bytes, as the Collector's file
// exporter writes it.
func readProtobuf(in *bufio.Reader, first byte, add func(Span)) error {
	var b bytes.Buffer
	if first >= leastTag {
		if _, err := b.ReadFrom(io.LimitReader(in, maxMessage+1)); err != nil {
			return err
		}
		if b.Len() > maxMessage {
			return errLarge
		}
		if err := eachSpan(b.Bytes(), add); err != nil {
			return fmt.Errorf("it is no OTLP: neither its JSON nor its protobuf (%w)", err)
		}
		return nil
	}
	length := make([]byte, 4)
	for n := 1; ; n++ {
		switch _, err := io.ReadFull(in, length); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("message %d: %w", n, ErrCut)
		case err != nil:
			return err
		}
		size := int64(binary.BigEndian.Uint32(length))
		if size > maxMessage {
			return fmt.Errorf("message %d: %w", n, errLarge)
		}
		b.Reset()
		if came, err := io.CopyN(&b, in, size); errors.Is(err, io.EOF) && n > 1 {
			return fmt.Errorf("message %d: %w: it has %d bytes, and %d are there", n, ErrCut, size, came)
		} else if errors.Is(err, io.EOF) {
			return fmt.Errorf("message %d: it has %d bytes, and %d are there", n, size, came)
		} else if err != nil {
			return err
		}
		if err := eachSpan(b.Bytes(), add); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
	}
}

// field is one of a message: bytes of what has a length, a number of what has none.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// eachField calls take with the fields of a message in their order.
func eachField(b []byte, take func(field) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := field{number: number}
		switch kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.value = uint64(v)
		default:
			return errors.New("a group, which the protocol has not")
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := take(f); err != nil {
			return err
		}
	}
	return nil
}

// eachSpan calls add with the spans of a message. Nothing is kept of it: a span may take two bytes.
func eachSpan(b []byte, add func(Span)) error {
	if err := eachField(b, func(f field) error {
		if f.number != fieldResourceSpans { // a few bytes of anything may be a message
			return fmt.Errorf("field %d, which the protocol has not", f.number)
		}
		return nil
	}); err != nil {
		return err
	}
	return eachPart(b, fieldResourceSpans, func(resource []byte) error {
		service := ""
		err := eachPart(resource, fieldResource, func(b []byte) error {
			return eachPart(b, fieldAttributes, func(b []byte) error {
				name, is, err := serviceOf(b)
				if is {
					service = name
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		return eachPart(resource, fieldScopeSpans, func(b []byte) error {
			return eachPart(b, fieldSpans, func(b []byte) error {
				s, err := spanOf(b)
				if s.Service = service; err == nil {
					add(s)
				}
				return err
			})
		})
	})
}

// eachPart calls take with the parts of a message that have a number.
func eachPart(b []byte, number protowire.Number, take func([]byte) error) error {
	return eachField(b, func(f field) error {
		if f.number != number || f.bytes == nil {
			return nil
		}
		return take(f.bytes)
	})
}

// serviceOf is the name of a service, where an attribute has that.
func serviceOf(b []byte) (name string, is bool, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case fieldKey:
			is = string(f.bytes) == serviceName
		case fieldValue:
			return eachPart(f.bytes, fieldText, func(b []byte) error {
				name = text(b)
				return nil
			})
		}
		return nil
	})
	return name, is, err
}

// text is a name, of which no more is kept than can be shown.
func text(b []byte) string { return string(b[:min(len(b), 4*maxName)]) }

func spanOf(b []byte) (s Span, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case fieldTrace:
			if len(f.bytes) == len(s.Trace) {
				copy(s.Trace[:], f.bytes)
			}
		case fieldSpan:
			if len(f.bytes) == len(s.ID) {
				copy(s.ID[:], f.bytes)
			}
		case fieldParent:
			if len(f.bytes) == len(s.Parent) {
				copy(s.Parent[:], f.bytes)
			}
		case fieldName:
			s.Name = text(f.bytes)
		case fieldStart:
			s.Start = int64(min(f.value, math.MaxInt64))
		case fieldEnd:
			s.End = int64(min(f.value, math.MaxInt64))
		case fieldStatus:
			return eachField(f.bytes, func(f field) error {
				if f.number == fieldCode {
					s.Failed = f.value == codeError
				}
				return nil
			})
		}
		return nil
	})
	return s, err
}
