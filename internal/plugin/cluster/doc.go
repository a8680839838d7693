// Package cluster reads what kubectl howdah shows, with the rights of who asks: what may not be read is noted as hidden and is no error.
// It has a REST client for the few groups that are needed and no clientset: that alone would double the size of the program.
package cluster
