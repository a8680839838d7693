// Package conditions decides how findings become the conditions of a status:
// which of several findings counts, what a summary says, and when a transition
// time moves. It reads no clock and no cluster; the time is given to it. It must
// not import a client, a context or a logger.
package conditions
