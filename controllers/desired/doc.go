// Package desired decides what the children of our objects are: it turns an
// object and what was observed around it into apply configurations, in a fixed
// order, equal for equal input. Names come from internal/naming. It must not import
// a client, a context or a logger, nor a controller; it writes nothing.
package desired
