package otlp

import (
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

// readProtobuf reads one message, or many, each with its length before it: in four bytes, as the Collector's file
// exporter writes it.
func readProtobuf(in io.Reader, add func(Span)) error {
	all, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return err
	}
	var spans []Span
	if err = eachSpan(all, func(s Span) { spans = append(spans, s) }); err == nil {
		for _, s := range spans {
			add(s)
		}
		return nil
	}
	for n := 1; len(all) > 0; n++ {
		if len(all) < 4 {
			return fmt.Errorf("message %d: it is cut off", n)
		}
		size := binary.BigEndian.Uint32(all)
		if all = all[4:]; int64(size) > int64(len(all)) || size > maxValue {
			if n == 1 {
				return fmt.Errorf("it is no OTLP: neither its JSON nor its protobuf (%w)", err)
			}
			return fmt.Errorf("message %d: it has %d bytes, and %d are there", n, size, len(all))
		}
		if err := eachSpan(all[:size], add); err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
		all = all[size:]
	}
	return nil
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

// eachSpan calls add with the spans of a message.
func eachSpan(b []byte, add func(Span)) error {
	return eachField(b, func(f field) error {
		if f.number != fieldResourceSpans || f.bytes == nil {
			return nil
		}
		service := ""
		var scopes [][]byte
		err := eachField(f.bytes, func(f field) error {
			switch {
			case f.number == fieldScopeSpans && f.bytes != nil:
				scopes = append(scopes, f.bytes)
			case f.number == fieldResource && f.bytes != nil:
				return eachField(f.bytes, func(f field) error {
					if f.number != fieldAttributes {
						return nil
					}
					key, text, err := attributeOf(f.bytes)
					if key == serviceName {
						service = text
					}
					return err
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, scope := range scopes {
			err := eachField(scope, func(f field) error {
				if f.number != fieldSpans {
					return nil
				}
				s, err := spanOf(f.bytes)
				s.Service = service
				if err == nil {
					add(s)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func attributeOf(b []byte) (key, text string, err error) {
	err = eachField(b, func(f field) error {
		switch f.number {
		case fieldKey:
			key = string(f.bytes)
		case fieldValue:
			return eachField(f.bytes, func(f field) error {
				if f.number == fieldText {
					text = string(f.bytes)
				}
				return nil
			})
		}
		return nil
	})
	return key, text, err
}

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
			s.Name = string(f.bytes[:min(len(f.bytes), 4*maxName)])
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
