// Package servertime has the time of the API server, taken from its responses, however wrong the operator's own clock
// is. It decides nothing, and must not import controllers.
package servertime
