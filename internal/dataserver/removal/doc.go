// Package removal deletes what clients made, however much and however deep that is, until its context ends. It imports nothing of Howdah's.
package removal
