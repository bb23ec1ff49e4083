package stats

import (
	"errors"
	"fmt"
	"math"
)

// Block is trials of two arms that were run one after the other, in an order
// of the arms that was drawn by lot from all orders. Arms may differ in their
// number of values: those of invalid trials are left out.
type Block struct{ Control, Treatment []float64 }

// paired returns the n-th trial of the control in each block with the n-th of
// the treatment; what has no partner is left out.
func paired(blocks []Block) (control, treatment []float64) {
	for _, b := range blocks {
		n := min(len(b.Control), len(b.Treatment))
		control, treatment = append(control, b.Control[:n]...), append(treatment, b.Treatment[:n]...)
	}
	return control, treatment
}

// ErrPairs is returned for samples that are not pairs of finite numbers.
var ErrPairs = errors.New("not pairs of finite numbers")

// checkBlocks refuses what cannot be compared block by block.
func checkBlocks(blocks []Block, least int) error {
	for i, b := range blocks {
		for _, values := range [][]float64{b.Control, b.Treatment} {
			for _, v := range values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					return fmt.Errorf("%w: block %d holds %v", ErrPairs, i+1, v)
				}
			}
		}
	}
	control, treatment := paired(blocks)
	return checkPairs(control, treatment, least)
}

// checkPairs refuses what cannot be compared pair by pair.
func checkPairs(control, treatment []float64, least int) error {
	if len(control) != len(treatment) {
		return fmt.Errorf("%w: %d values of the control, %d of the treatment", ErrPairs, len(control), len(treatment))
	}
	if len(control) < least {
		return fmt.Errorf("%w: %d pairs, at least %d are needed", ErrPairs, len(control), least)
	}
	for i := range control {
		if d := treatment[i] - control[i]; math.IsNaN(d) || math.IsInf(d, 0) {
			return fmt.Errorf("%w: pair %d is %v and %v", ErrPairs, i+1, control[i], treatment[i])
		}
	}
	return nil
}
