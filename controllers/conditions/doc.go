// Package conditions decides how findings become the conditions of a status: which of several findings counts, the
// summary, and when the transition time changes. It reads no clock and no cluster; the caller passes the time. It must
// not import a client, a context or a logger.
package conditions
