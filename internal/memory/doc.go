// Package memory keeps a process within the memory that its container may use. It decides nothing about what the memory
// is for, and imports nothing of Howdah.
package memory
