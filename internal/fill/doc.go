// Package fill judges how full a volume is, and when it will be full at its present rate. Data servers judge their volumes
// with it and report the result, so that placement, conditions, events and the plugin say the same.
//
// It is pure: figures in, judgements out. It imports nothing of the project.
package fill
