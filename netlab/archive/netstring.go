package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// netString is a value of a tagged netstring (tnetstrings.info), of which mitmproxy's have texts, too: what it is and
// its bytes. "3:abc," has the bytes abc, "4:true!" is a truth value, "8:1:a;1:7#}" a dictionary.
type netString struct {
	kind byte
	text []byte
}

// longestSize is how many digits the size of a value has at most.
const longestSize = 12

// errNetString says that what stands where a value has to be is none.
var errNetString = errors.New("its values are not those of mitmproxy") // constant

// sizeOf reads the size of a value and the colon behind it.
func sizeOf(digits []byte) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSuffix(string(digits), ":"), 10, 64)
	if err != nil || n < 0 || len(digits) > longestSize {
		return 0, errNetString
	}
	return n, nil
}

// cutNetString cuts off the value that b begins with.
func cutNetString(b []byte) (v netString, rest []byte, err error) {
	colon := bytes.IndexByte(b[:min(len(b), longestSize+1)], ':')
	if colon < 0 {
		return v, nil, errNetString
	}
	n, err := sizeOf(b[:colon])
	if err != nil || n >= int64(len(b)-colon-1) {
		return v, nil, errNetString
	}
	b = b[colon+1:]
	return netString{b[n], b[:n]}, b[n+1:], nil
}

// each calls element for the elements of a list, or the names and values of a dictionary in turn.
func (v netString) each(element func(netString) error) error {
	if v.kind != ']' && v.kind != '}' {
		return nil
	}
	for rest := v.text; len(rest) > 0; {
		var one netString
		var err error
		if one, rest, err = cutNetString(rest); err != nil {
			return err
		}
		if err := element(one); err != nil {
			return err
		}
	}
	return nil
}

// fields are those of a dictionary by their names; of another value, none.
func (v netString) fields() (map[string]netString, error) {
	const most = 200
	fields, name := map[string]netString{}, ""
	isName := false
	err := v.each(func(one netString) error {
		if isName = !isName; isName {
			name = string(one.text)
			return nil
		}
		fields[name] = one
		if len(fields) > most {
			return fmt.Errorf("more than %d fields of one object: %w", most, errNetString)
		}
		return nil
	})
	if v.kind != '}' {
		clear(fields)
	}
	return fields, err
}

// items are the elements of a list, at most so many.
func (v netString) items(most int) (list []netString) {
	if v.kind == ']' {
		_ = v.each(func(one netString) error {
			if list = append(list, one); len(list) == most {
				return io.EOF
			}
			return nil
		}) // what follows on a damaged element is not used
	}
	return list
}

func (v netString) isNull() bool { return v.kind == 0 || v.kind == '~' }

func (v netString) isTrue() bool { return v.kind == '!' && string(v.text) == "true" }

// number is a number, 0 for what is none.
func (v netString) number() float64 {
	n, err := strconv.ParseFloat(string(v.text), 64)
	if err != nil || v.kind != '#' && v.kind != '^' || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0
	}
	return n
}

// string is a text, or bytes; "" for what is neither.
func (v netString) string() string {
	if v.kind != ',' && v.kind != ';' {
		return ""
	}
	return string(v.text)
}

// header reads a list of names and values.
func (v netString) header() ([]lab.HeaderField, error) {
	var pairs []harPair
	err := v.each(func(one netString) error {
		pair := one.items(2)
		if len(pair) != 2 {
			return errNetString
		}
		if pairs = append(pairs, harPair{pair[0].string(), pair[1].string()}); len(pairs) > maxFields {
			return fmt.Errorf("it has a header of more than %d fields", maxFields)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return harHeaders(pairs)
}
