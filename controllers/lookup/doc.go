// Package lookup reads objects that may not exist. It decides nothing, and must not import a controller.
package lookup
