// Package command is the commands of kubectl howdah: what they take, what they read (internal/plugin/cluster) and how they end. What
// they say is decided in internal/plugin/view.
package command
