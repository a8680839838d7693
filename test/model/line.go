package model

import "math"

// line is a straight line y = offset + slope × x.
type line struct {
	offset, slope float64
	// explained is how much of the points' spread the line explains (R², 1: all), residual how far the farthest point is from it.
	explained, residual float64
}

// fit is the line that lies nearest to some points (least squares).
func fit(x, y []float64) (l line) {
	n := float64(len(x))
	if len(x) < 2 {
		return line{}
	}
	var meanX, meanY float64
	for i := range x {
		meanX += x[i] / n
		meanY += y[i] / n
	}
	var xx, xy, yy float64
	for i := range x {
		xx += (x[i] - meanX) * (x[i] - meanX)
		xy += (x[i] - meanX) * (y[i] - meanY)
		yy += (y[i] - meanY) * (y[i] - meanY)
	}
	if xx == 0 || yy == 0 {
		return line{offset: meanY}
	}
	l.slope = xy / xx
	l.offset, l.explained = meanY-l.slope*meanX, xy*xy/(xx*yy)
	for i := range x {
		l.residual = max(l.residual, math.Abs(y[i]-l.at(x[i])))
	}
	return l
}

func (l line) at(x float64) float64 { return l.offset + l.slope*x }
