package ganesha

import (
	"regexp"
	"slices"
)

// readAtStart are the options that ganesha reads only when it starts, and that users change, by field of a DataServer's
// specification (docs/kinds/dataserver.md).
var readAtStart = map[string]*regexp.Regexp{
	"leaseSeconds":   regexp.MustCompile(`(?m)^\s*Lease_Lifetime = (\d+);`),
	"graceSeconds":   regexp.MustCompile(`(?m)^\s*Grace_Period = (\d+);`),
	"maxConnections": regexp.MustCompile(`(?m)^\s*RPC_Max_Connections = (\d+);`),
}

// RestartPending are the fields, sorted, whose values a ganesha that was started with one configuration does not take from
// another one by a reload.
func RestartPending(started, wanted string) (fields []string) {
	if started == "" {
		return nil
	}
	for field, option := range readAtStart {
		if !slices.Equal(option.FindStringSubmatch(started), option.FindStringSubmatch(wanted)) {
			fields = append(fields, field)
		}
	}
	slices.Sort(fields)
	return fields
}
