// Package engine is the load engine Native: client processes that write the
// dataset of a benchmark.Plan to a share, and read it as DLIO does, in step with one another over one
// TCP port of the first client. What it decides it asks package benchmark; this
// package reads, writes, sleeps and talks. It must not import a controller.
package engine
