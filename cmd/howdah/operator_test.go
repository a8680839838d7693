package main

import "testing"

func TestMetricsWithoutProofAreForTheMachineItself(t *testing.T) {
	for address, good := range map[string]bool{"127.0.0.1:8080": true, "[::1]:8080": true, ":8080": false, "0.0.0.0:8080": false, "10.0.0.7:8080": false, "0": false} {
		if _, err := metricsOptions(address, false); (err == nil) != good {
			t.Errorf("%s without proof: %v", address, err)
		}
	}
	for _, address := range []string{":8443", "0"} {
		if options, err := metricsOptions(address, true); err != nil || !options.SecureServing || options.FilterProvider == nil {
			t.Errorf("%s: %+v, %v", address, options, err)
		}
	}
}
