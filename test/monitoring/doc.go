// Package monitoring tests rules, alerts, dashboards and monitors (config/prometheus) against the catalogue of metrics, with
// Debian's promtool where one is (HOWDAH_PROMETHEUS names its folder; hack/prometheus.sh fetches it).
package monitoring
