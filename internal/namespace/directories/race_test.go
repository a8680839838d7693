//go:build race

package directories

// slower is how many times less there is to do under the race detector, with which everything takes that much longer.
const slower = 20
