package argocd

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// fluxSpecs are of the engine of Flux's kustomize-controller. It gets the manifests that are in the platform repository at the end.
func fluxSpecs() {
	const namespace = "team-b"
	flux := os.Getenv("HOWDAH_FLUX")
	keep := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		args = append([]string{"-namespace", namespace, "-timeout", scaled(3 * time.Minute).String()}, append(args, platformPath("storage/team-a"))...)
		output, err := exec.CommandContext(ctx, flux, args...).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", output)
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return lines[len(lines)-1]
	}

	skipWithoutFlux := func() {
		if flux == "" {
			Skip("HOWDAH_FLUX does not name the program of hack/flux")
		}
	}

	It("with Flux's engine: a FileServer and its shares become Current", func(ctx SpecContext) {
		skipWithoutFlux()
		_, err := cluster.ConnectTo(ctx, namespace)
		Expect(err).NotTo(HaveOccurred())
		editPlatform("storage/team-a/fileserver.yaml", "replicas: 3", "replicas: 1")
		start := time.Now()
		keep(ctx, "-for", "1s")
		figure("Flux's engine: a FileServer of one data server and two shares, to kstatus' Current", "%s", seconds(start))
	})

	It("with Flux's engine: an edit by hand is undone, and a killed data server makes no difference", func(ctx SpecContext) {
		skipWithoutFlux()
		kubectl(ctx, "-n", namespace, "patch", "fileshare", share, "--type=merge", `--patch={"spec": {"mode": "0700"}}`)
		deletePod(ctx, namespace, naming.DataServer(fileServer, 0))
		figure("the same: an edit by hand is undone; then, with a data server killed", "%s", keep(ctx, "-edited", "-for", underLoad.String()))
	})
}
