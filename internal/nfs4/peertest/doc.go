// Package peertest is an NFSv4.1 client for tests that says what it likes: it may send without reading, on as many
// connections and slots as it wants, and never recovers. Only tests may import it.
package peertest
