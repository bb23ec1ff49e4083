package peers

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// welch is the two-sided p-value of Welch's t-test, 1 where there is none.
func welch(control, treatment []float64) float64 {
	t, err := moremath.TwoSampleWelchTTest(moremath.Sample{Xs: treatment}, moremath.Sample{Xs: control}, moremath.LocationDiffers)
	if err != nil { // fewer than two values, or none of them varies
		return 1
	}
	return t.P
}

// welchInterval is the 95 % interval of the difference of means with the degrees of
// freedom of Welch and Satterthwaite.
func welchInterval(control, treatment []float64) (low, high float64) {
	t, err := moremath.TwoSampleWelchTTest(moremath.Sample{Xs: treatment}, moremath.Sample{Xs: control}, moremath.LocationDiffers)
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return tInterval(control, treatment, t.DoF)
}

// tachometer is its 95 % interval of the difference of means: the standard error is
// Welch's, of unequal variances, and the degrees of freedom are those of the smaller
// sample, n − 1, not Satterthwaite's.
func tachometer(control, treatment []float64) (low, high float64) {
	return tInterval(control, treatment, float64(min(len(control), len(treatment))-1))
}

func tInterval(control, treatment []float64, freedom float64) (low, high float64) {
	if len(control) < 2 || len(treatment) < 2 {
		return math.NaN(), math.NaN()
	}
	difference := moremath.Mean(treatment) - moremath.Mean(control)
	squared := moremath.Variance(control)/float64(len(control)) + moremath.Variance(treatment)/float64(len(treatment))
	margin := moremath.InvCDF(moremath.TDist{V: freedom})(0.975) * math.Sqrt(squared)
	return difference - margin, difference + margin
}
