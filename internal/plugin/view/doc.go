// Package view decides what kubectl howdah prints. It makes models of the objects that the user may read (World); -o json and -o yaml print
// the models, and each model also has a text. It does no input or output and has no clock: World has the time. internal/plugin/cluster reads
// the objects, internal/plugin/text draws the lines.
package view
