// Package yamlguard makes errors of the panics of the reader of YAML, of which a few texts that are no YAML are the cause.
//
// What reads a text flows in, its error flows out.
package yamlguard

import "errors"

// ErrNoYAML is returned where the reader panics.
var ErrNoYAML = errors.New("the text cannot be read as YAML") // constant

// Try reads a text.
func Try(read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrNoYAML
		}
	}()
	return read()
}
