// Package crash has the tests of what is left when a namespace server ends, or an answer is lost, in the middle of a change.
// Two namespace servers work on one API and the same data servers, all in memory and in fake time, and are cut at every write,
// call and answer in turn, or at many at random. It has tests only.
package crash
