// Package ganeshatest reads back what package ganesha writes, for tests. Its reader is
// stricter than ganesha's: it knows no includes, no escapes, no single
// quotes and no option that a data server does not have, so whatever is not plainly what
// the model says is an error. Only tests may import it.
package ganeshatest
