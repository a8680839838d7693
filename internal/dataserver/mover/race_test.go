//go:build race

package mover

// step leaves out what others find as well, where the race detector makes everything several times as slow.
const step = 3
