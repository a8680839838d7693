// Package metrics is the catalogue of everything that Howdah's processes expose to Prometheus: names, types, labels and
// what they mean. The processes make their collectors of it, docs/reference/metrics.md is written from it, and rules and
// dashboards are checked against it (test/monitoring). It counts nothing itself.
package metrics
