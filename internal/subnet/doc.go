// Package subnet says which addresses count as one client where something is limited for each. It imports the standard library only.
package subnet
