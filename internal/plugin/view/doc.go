// Package view decides what kubectl howdah says: from the objects that somebody may read (World) to a model, which is what -o json and
// -o yaml print, and from a model to text. It talks to nobody and has no clock: World carries the time. internal/plugin/cluster reads the
// objects, internal/plugin/text draws the lines.
package view
