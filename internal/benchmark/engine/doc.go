// Package engine is the load engine Native: client processes that write the dataset of a benchmark.Plan to a share and read it as DLIO does,
// in step with each other over one TCP port of the first client. Package benchmark has the decisions; this package does the input and
// output. It must not import a controller.
package engine
