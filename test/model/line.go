package model

// line is the straight line y = slope × x + offset that lies nearest to some points (least squares), and how much of their spread it
// explains (R², 1: all).
func line(x, y []float64) (slope, offset, explained float64) {
	n := float64(len(x))
	if len(x) < 2 {
		return 0, 0, 0
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
		return 0, meanY, 0
	}
	return xy / xx, meanY - xy/xx*meanX, xy * xy / (xx * yy)
}
