package notbuilt

import "testing"

func TestNotBuilt(t *testing.T) { undefined() }
