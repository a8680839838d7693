package benchmark

// BatchSize is the number of samples of a step of unet3d (reader.batch_size).
const BatchSize = 7

// Steps is the number of steps of an epoch: whole batches only (drop_last).
func Steps(samples, accelerators int) int { return samples / BatchSize / accelerators }

// Order hands out the reading order of one accelerator, epoch by epoch, as DLIO's
// dlio_sampler does: a contiguous part of the samples, shuffled in place at each epoch with the
// same seed, so that each epoch has another order and each run the same ones.
type Order struct{ samples []int }

// NewOrder is the order of accelerator rank of accelerators. DLIO fails if samples
// is not a multiple of accelerators; here the remainder is never read.
func NewOrder(samples, accelerators, rank int) *Order {
	share := samples / accelerators
	o := &Order{samples: make([]int, share)}
	for i := range o.samples {
		o.samples[i] = rank*share + i
	}
	return o
}

// NextEpoch is the order of the next epoch. The slice is valid until the next call.
func (o *Order) NextEpoch() []int {
	newNumpyRandom(orderSeed).shuffle(o.samples)
	return o.samples
}

// defaultPrefetchSize is DLIO's reader.prefetch_size.
const defaultPrefetchSize = 2

// Outstanding is how many batches of an accelerator are being read or wait to be
// consumed at the most: torch's DataLoader gives each of its workers prefetch_factor batches, which DLIO
// sets to ceil(prefetch_size / read_threads).
func Outstanding(readThreads int) int {
	factor := (defaultPrefetchSize + readThreads - 1) / readThreads
	return readThreads * factor
}
