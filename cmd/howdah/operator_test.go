package main

import (
	"slices"
	"testing"
)

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

// Chart and kustomize pass images in the environment, where kustomize can replace them.
func TestImagesComeFromTheEnvironment(t *testing.T) {
	t.Setenv("HOWDAH_IMAGE", "registry.example/howdah:1")
	t.Setenv("HOWDAH_SERVER_IMAGE", "registry.example/server:1")
	flags := newOperatorCommand().Flags()
	if err := flags.Parse([]string{"--server-image=other", "--image-pull-secrets=a,b"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := flags.GetString("howdah-image"); got != "registry.example/howdah:1" {
		t.Errorf("howdah's image: %q", got)
	}
	if got, _ := flags.GetString("server-image"); got != "other" {
		t.Errorf("an argument must override the environment: %q", got)
	}
	if got, _ := flags.GetStringSlice("image-pull-secrets"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("pull secrets: %q", got)
	}
}
