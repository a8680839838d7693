// Package cluster reads what kubectl howdah shows, with the rights of the user: what the user may not read is noted as hidden and is not an
// error. It has a REST client for the few groups that it needs. A clientset would double the size of the program.
package cluster
