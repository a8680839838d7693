// Command golangci-lint is golangci-lint with kube-api-linter built in as a
// module plugin, so that one binary lints both the code and the API types.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"
	_ "sigs.k8s.io/kube-api-linter" // registers the linter kubeapilinter
)

func main() {
	info := commands.BuildInfo{GoVersion: "unknown", Version: "unknown", Commit: "unknown", Date: "unknown"}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.GoVersion = build.GoVersion
		for _, dependency := range build.Deps {
			if dependency.Path == "github.com/golangci/golangci-lint/v2" {
				info.Version = dependency.Version
			}
		}
	}
	if err := commands.Execute(info); err != nil {
		fmt.Fprintln(os.Stderr, "golangci-lint failed:", err)
		os.Exit(exitcodes.Failure)
	}
}
