package long

import "testing"

func TestLong(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all: it takes long")
	}
}

func TestWeaker(t *testing.T) { t.Log("proves less: no second processor") }
