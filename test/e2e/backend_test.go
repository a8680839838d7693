package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

// Where the FileServers of the suite have their data, and all that the suite has to know of that. HOWDAH_E2E_BACKEND is volumes, or unset, or
// ceph: then shares are made in the Ceph that hack/ceph.sh put into the cluster, with its account of the least rights.
const backendVariable = "HOWDAH_E2E_BACKEND"

var inCeph = os.Getenv(backendVariable) == "ceph"

// What is about volumes has one of these labels, and is skipped elsewhere.
const (
	volumesHaveSizes = "volumes-have-sizes"
	podsNeedRights   = "pods-need-rights"
	volumesHaveOwner = "volumes-have-an-owner"
)

var aboutVolumes = map[string]string{
	volumesHaveSizes: "it is about sizes and classes of volumes",
	podsNeedRights:   "data servers of Ceph have no rights that a level refuses",
	volumesHaveOwner: "it is about data that one data server has and no other",
}

var _ = BeforeEach(func() {
	if !inCeph {
		return
	}
	for _, label := range CurrentSpecReport().Labels() {
		if why, found := aboutVolumes[label]; found {
			Skip(backendVariable + "=ceph: " + why)
		}
	}
})

// checkBackend is the error of a word that is none.
func checkBackend() error {
	if word := os.Getenv(backendVariable); word != "" && word != "volumes" && word != "ceph" {
		return fmt.Errorf("%s=%q: want volumes or ceph", backendVariable, word)
	}
	return nil
}

const cephCredential = "ceph"

func cephAccount(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	account, err := c.CephAccount(ctx)
	Expect(err).NotTo(HaveOccurred())
	return account
}

// prepareStorage makes what FileServers of a Kubernetes namespace need beside themselves.
func prepareStorage(ctx context.Context, namespace string) {
	GinkgoHelper()
	if !inCeph {
		return
	}
	Expect(c.Client.Create(ctx, cluster.CephCredential(cephAccount(ctx), namespace, cephCredential))).To(Succeed())
}

// storage is that of a FileServer.
func storage(ctx context.Context) v1alpha1.FileServerStorage {
	GinkgoHelper()
	if inCeph {
		return cluster.CephStorage(cephAccount(ctx), cephCredential)
	}
	volumes := v1alpha1.VolumesStorage{Size: new(resource.MustParse("1Gi"))}
	if sharedFileSystems {
		volumes.SharedFileSystemPolicy = v1alpha1.SharedFileSystemAllow
	}
	return v1alpha1.FileServerStorage{Volumes: volumes}
}

// namesOfData are names of what a data server has of shares, gone ones included.
func namesOfData(ctx context.Context, ordinal int32) string {
	GinkgoHelper()
	if !inCeph {
		return shell(ctx, naming.DataServer(fileServer, ordinal), "ls %s/0", naming.VolumesRoot)
	}
	// A ShareStorage goes when the steward has removed the share's place.
	output, err := c.Kubectl(ctx, "get", "sharestorages", "-o", "name")
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// directoriesOn are those of a share, by its key, that a data server has, or that are in one of them, by its path.
func directoriesOn(ctx context.Context, ordinal int32, key, path string) []string {
	GinkgoHelper()
	server := naming.DataServer(fileServer, ordinal)
	if !inCeph {
		return strings.Fields(shell(ctx, server, "ls %s/0/%s/%s 2>/dev/null || true", naming.VolumesRoot, key, path))
	}
	list := &internalv1.ShareDirectoryList{}
	Expect(c.List(ctx, list, client.InNamespace(c.Namespace))).To(Succeed())
	var found []string
	for i := range list.Items {
		spec := &list.Items[i].Spec
		if spec.FileShareRef.Name == key && spec.DataServerRef.Name == server && (path == "" || spec.Path == path) {
			found = append(found, spec.Path)
		}
	}
	slices.Sort(found)
	return found
}

// expectStewardHas checks the image of the suite's steward, if there is one.
func expectStewardHas(ctx context.Context, image string) {
	GinkgoHelper()
	if inCeph {
		deployment := &appsv1.Deployment{}
		Expect(c.Get(ctx, naming.Steward(fileServer), deployment)).To(Succeed())
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal(image), "the steward's image")
	}
}
