package yamlguard

import (
	"errors"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestTry: a reader that panics has an error, and one that does not has its own.
func TestTry(t *testing.T) {
	var v any
	if err := Try(func() error { panic("of a reader") }); !errors.Is(err, ErrNoYAML) {
		t.Errorf("a panic is %v", err)
	}
	if err := Try(func() error { return yaml.Unmarshal([]byte("a: 1"), &v) }); err != nil {
		t.Errorf("a good text: %v", err)
	}
}
