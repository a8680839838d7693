// Package storagesuite runs Kubernetes' own end-to-end tests of storage against a StorageClass of Howdah. driver.yaml says what
// it can. hack/test-storage.sh brings a lab up for it; on other clusters KUBECONFIG names one, with the class and the images.
package storagesuite

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"
	"k8s.io/kubernetes/test/utils/image"

	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/e2e/storage/external"
)

func TestMain(m *testing.M) {
	images := flag.Bool("images", false, "print the names of the images that the specs run, and end")
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if *images {
		// Of nginx nothing but a shell is used.
		fmt.Printf("agnhost %s\nbusybox %s\nbusybox %s\n", image.GetE2EImage(image.Agnhost), image.GetE2EImage(image.BusyBox), image.GetE2EImage(image.Nginx))
		return
	}
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestStorage(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	ginkgo.RunSpecs(t, "Kubernetes' storage suite on Howdah", suite, reporter)
}
