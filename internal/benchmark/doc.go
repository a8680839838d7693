// Package benchmark decides everything about an MLPerf Storage run that can be
// decided without reading a file or a clock: which files a dataset has, how large
// they are and in which order they are read, what the accelerator utilization is,
// which rules of MLPerf Storage a run keeps, what the verdict is, and which step
// an MLPerfStorageJob needs next. Formulas follow dlio-benchmark 2.0.0 (PyPI), the
// code of MLPerf Storage v1.0.
//
// It must not import a client, a context or a logger; package engine does the work.
package benchmark
