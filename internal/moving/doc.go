// Package moving decides the steps of a directory's move between the volumes of two data servers
// (docs/design/2026-11-25-moves-on-volumes.md). It must not import a client, a context or a logger.
package moving
