// Package naming gives every object that Howdah makes its name, and every
// component the paths and ports that others find it by. It decides names and
// nothing else: it reads no cluster and imports the API types only.
package naming
