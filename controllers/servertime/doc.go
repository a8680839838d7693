// Package servertime tells what time it is by the API server, whose responses say so, however wrong the operator's own clock is or becomes. It decides
// nothing; it must not import controllers.
package servertime
