package ceph

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/test/cluster"
)

const (
	// The namespace and names that hack/ceph.sh uses.
	cephNamespace = "ceph"
	filesystem    = "fs1"
	group         = "howdah-test"

	namespacePrefix = "howdah-ceph"

	// limit ends a spec that hangs. On an idle machine no spec takes a minute.
	limit = 15 * time.Minute
)

var (
	c *cluster.Cluster
	// cephImage has Ceph's clients. It is the image of Ceph's own pods.
	cephImage string
	// admin and provisioner are Ceph accounts.
	admin, provisioner account
	fsid, monHost      string
)

func TestCeph(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(limit)
	SetDefaultEventuallyPollingInterval(cluster.PollInterval)
	suite, reporter := GinkgoConfiguration()
	// On a slow day the suite takes more than an hour in the lab. Each spec has its own limit. The command line's flag has no
	// effect here.
	suite.Timeout = 3 * time.Hour
	RunSpecs(t, "A real Ceph", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	c, err = cluster.Connect(ctx, namespacePrefix)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		output, err := c.Kubectl(ctx, "delete", "namespace", c.Namespace, "--wait=false")
		Expect(err).NotTo(HaveOccurred(), output)
	})
	all := secret(ctx, "ceph-cluster")
	fsid, monHost = all["fsid"], all["mon_host"]
	admin = account{user: "admin", key: all["admin-key"]}
	least := secret(ctx, "howdah-provisioner")
	provisioner = account{user: least["userID"], key: least["userKey"]}
	mon := &corev1.Pod{}
	Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: cephNamespace, Name: "ceph-mon-0"}, mon)).To(Succeed())
	cephImage = mon.Spec.Containers[0].Image
}, NodeTimeout(limit))

var _ = ReportAfterEach(func(report SpecReport) {
	if !report.Failed() || c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"get", "pods", "-A", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-l", cluster.ClientLabel, "--all-containers", "--prefix", "--tail=60"},
		{"exec", "--namespace", cephNamespace, "ceph-mon-0", "--", "ceph", "status"},
	} {
		output, err := c.Kubectl(ctx, args...)
		fmt.Fprintf(GinkgoWriter, "--- kubectl %v (%v)\n%s\n", args, err, output)
	}
})

// secret reads a Secret of Ceph's namespace.
func secret(ctx context.Context, name string) map[string]string {
	GinkgoHelper()
	found := &corev1.Secret{}
	Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: cephNamespace, Name: name}, found)).To(Succeed())
	values := map[string]string{}
	for key, value := range found.Data {
		values[key] = string(value)
	}
	return values
}

// files creates a Secret with files, for a pod to mount.
func files(ctx context.Context, name string, content map[string]string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, StringData: content})).To(Succeed())
}

// run creates a pod with a Secret's files and waits until it runs.
func run(ctx context.Context, name, image, secretName, at string, change func(*corev1.Container), command ...string) {
	GinkgoHelper()
	pod := podWith(name, image, secretName, at, command...)
	change(&pod.Spec.Containers[0])
	started(ctx, pod)
}

// podWith returns a pod that mounts a Secret's files.
func podWith(name, image, secretName, at string, command ...string) *corev1.Pod {
	grace, token := int64(1), false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace, Labels: map[string]string{cluster.ClientLabel: "true"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken:  &token,
			Containers: []corev1.Container{{
				Name: "main", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
				VolumeMounts: []corev1.VolumeMount{{Name: "files", MountPath: at}},
			}},
			Volumes: []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: secretName},
			}}},
		},
	}
}

// withHowdah gives a pod whose image does not have it the program howdah, at /opt/howdah.
func withHowdah(pod *corev1.Pod) {
	at := corev1.VolumeMount{Name: "howdah", MountPath: "/opt/howdah"}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: at.Name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{
		Name: at.Name, Image: c.ClientImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"cp", "/usr/local/bin/howdah", at.MountPath}, VolumeMounts: []corev1.VolumeMount{at},
	})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, at)
}

// started creates a pod, waits until it runs, and removes it at the end of the spec.
func started(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(c.Create(ctx, pod)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(c.Delete(ctx, pod))).To(Succeed()) }, NodeTimeout(limit))
	Expect(c.WaitPodReady(ctx, pod.Name)).To(Succeed())
}

// serverImage returns the image of the data servers, whose ganesha signs handles.
func serverImage() string {
	GinkgoHelper()
	image := os.Getenv("HOWDAH_SERVER_IMAGE")
	Expect(image).NotTo(BeEmpty(), "HOWDAH_SERVER_IMAGE names the image of data servers")
	return image
}
