package lab

import (
	"errors"
	"testing"
)

func TestRoom(t *testing.T) {
	many := errors.New("too many")
	for _, c := range []struct {
		all, own, most int
		want           error
	}{
		{79, 79, 100, nil},
		{80, 80, 100, ErrShare},
		{99, 19, 100, nil},
		{100, 0, 100, many},
		{100, 100, 100, many},
		{7, 7, 8, ErrShare}, // one is left to the others
		{7, 0, 8, nil},
	} {
		if got := Room(c.all, c.own, c.most, many); got != c.want {
			t.Errorf("Room(%d, %d, %d) = %v, want %v", c.all, c.own, c.most, got, c.want)
		}
	}
}
