//go:build !race

package directories

const slower = 1
