// Package dataservertest has what tests of a data server's rooms share: objects of the API, a reporter in memory, and certificates. Only tests
// import it.
package dataservertest
