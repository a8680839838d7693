// Package supervisor starts ganesha, watches it, and starts it again whenever it ends. It holds the port that ganesha listens on, and reads from
// ganesha's log what state it is in. It decides nothing about exports, and must not import the other rooms of internal/dataserver.
package supervisor
