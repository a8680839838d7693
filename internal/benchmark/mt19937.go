package benchmark

import "math"

// The constants of MT19937 (Matsumoto and Nishimura 1998).
const (
	mtN         = 624
	mtM         = 397
	mtMatrixA   = 0x9908b0df
	mtUpperMask = 0x80000000
	mtLowerMask = 0x7fffffff
)

// numpyRandom is numpy's legacy generator (numpy.random.seed and the functions
// of that module): MT19937 with the polar method for normal numbers. DLIO draws file sizes
// and reading orders from it, so only the same numbers give the same dataset and order.
type numpyRandom struct {
	state    [mtN]uint32
	next     int
	gauss    float64
	hasGauss bool
}

// newNumpyRandom is numpy.random.seed(seed) for an integer seed (init_genrand).
func newNumpyRandom(seed uint32) *numpyRandom {
	r := &numpyRandom{next: mtN}
	r.state[0] = seed
	for i := uint32(1); i < mtN; i++ {
		previous := r.state[i-1]
		r.state[i] = 1812433253*(previous^previous>>30) + i
	}
	return r
}

func (r *numpyRandom) uint32() uint32 {
	if r.next == mtN {
		r.refill()
	}
	y := r.state[r.next]
	r.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (r *numpyRandom) refill() {
	for i := range mtN {
		y := r.state[i]&mtUpperMask | r.state[(i+1)%mtN]&mtLowerMask
		value := r.state[(i+mtM)%mtN] ^ y>>1
		if y&1 != 0 {
			value ^= mtMatrixA
		}
		r.state[i] = value
	}
	r.next = 0
}

// double is a number in [0, 1) of 53 bits (genrand_res53).
func (r *numpyRandom) double() float64 {
	a, b := r.uint32()>>5, r.uint32()>>6
	return (float64(a)*67108864 + float64(b)) / 9007199254740992
}

// normal is numpy.random.normal(mean, deviation): legacy_gauss, which makes two
// numbers at a time and hands out the second one first.
func (r *numpyRandom) normal(mean, deviation float64) float64 {
	// The conversion keeps compilers for other machines from fusing the
	// multiplication and the addition, which would round differently.
	return mean + float64(deviation*r.standardNormal())
}

func (r *numpyRandom) standardNormal() float64 {
	if r.hasGauss {
		r.hasGauss = false
		return r.gauss
	}
	for {
		x1 := float64(2*r.double()) - 1
		x2 := float64(2*r.double()) - 1
		square := float64(x1*x1) + float64(x2*x2)
		if square >= 1 || square == 0 {
			continue
		}
		factor := math.Sqrt(-2 * math.Log(square) / square)
		r.gauss, r.hasGauss = factor*x1, true
		return factor * x2
	}
}

// shuffle is numpy.random.shuffle(values).
func (r *numpyRandom) shuffle(values []int) {
	for i := len(values) - 1; i >= 1; i-- {
		j := r.interval(uint32(i))
		values[i], values[j] = values[j], values[i]
	}
}

// interval is a number in [0, most]: masked draws until one fits (random_interval).
func (r *numpyRandom) interval(most uint32) uint32 {
	mask := most
	for shift := 1; shift <= 16; shift <<= 1 {
		mask |= mask >> shift
	}
	for {
		if value := r.uint32() & mask; value <= most {
			return value
		}
	}
}
