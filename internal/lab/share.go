package lab

import "errors"

// ErrShare is for the holder of a token that has its share of what all tokens share.
var ErrShare = errors.New("this token has as many as one may have, and the others are left to other tokens: " +
	"end some of its own, or have some removed that have ended") // constant

// ShareOf is how many of what all tokens share, at most so many, one may have: a fifth, and at least one, is left to the
// others.
func ShareOf(most int) int { return most - max(1, most/5) }

// Room says whether there is room for one more where all tokens have all, at most so many, and the one that asks has own of
// them. If not, the error is many or [ErrShare].
func Room(all, own, most int, many error) error {
	switch {
	case all >= most:
		return many
	case own >= ShareOf(most):
		return ErrShare
	}
	return nil
}
