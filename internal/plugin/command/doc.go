// Package command has the commands of kubectl howdah: their arguments, what they read (internal/plugin/cluster) and their exit codes.
// internal/plugin/view decides what they print.
package command
