//go:build !race

package mover

const step = 1
