// Package sameobject changes the object that was seen, and not another one that has its name by now. The API server looks at metadata.uid in a
// merge patch of metadata or specification, but not in one of a status: there it puts the old metadata back before it compares.
package sameobject
