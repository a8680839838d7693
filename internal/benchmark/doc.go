// Package benchmark decides everything about an MLPerf Storage run that needs no file and no clock: the files of a dataset, their sizes and
// reading order, the accelerator utilization, which rules of MLPerf Storage a run keeps, the verdict, and the next step of an
// MLPerfStorageJob. Formulas follow dlio-benchmark 2.0.0 (PyPI), the code of MLPerf Storage v1.0.
//
// It must not import a client, a context or a logger; package engine does the work.
package benchmark
