package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/plugin/command"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/test/builders"
)

var _ = Describe("kubectl howdah", Ordered, func() {
	var namespace, kubeconfig string

	// howdah runs the plugin as kubectl does.
	howdah := func(arguments ...string) (code int, out string) {
		GinkgoHelper()
		var o, e bytes.Buffer
		root := command.New(strings.NewReader(""), &o, &e)
		root.SetArgs(slices.Insert(arguments, 1, "--kubeconfig", kubeconfig))
		code = command.Run(ctx, root, &e)
		return code, o.String() + e.String()
	}
	// bindTo gives a user the rules of ClusterRoles in the story's namespace.
	bindTo := func(user string, rules ...rbacv1.PolicyRule) {
		GinkgoHelper()
		create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rules})
		create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
	}

	BeforeAll(func() {
		namespace = newNamespace()
		kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		access := clientcmdapi.NewConfig()
		access.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		access.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
		access.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
		access.CurrentContext = "x"
		Expect(clientcmd.WriteToFile(*access, kubeconfig)).To(Succeed())

		servingFileServer(namespace, "training", 2)
		create(builders.FileShare(namespace, "unet3d", "training").Path("/" + namespace).Depth(2).Directories("train/{0..3}").Build())
		readyShare(namespace, "unet3d")

		var ofKubernetes rbacv1.ClusterRole
		Expect(admin.Get(ctx, client.ObjectKey{Name: "system:aggregate-to-view"}, &ofKubernetes)).To(Succeed())
		bindTo("plugin-viewer", append(ofKubernetes.Rules, peopleRoles()["howdah-view"].Rules...)...)
		bindTo("plugin-unprivileged", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	})

	It("shows the tree of what there is, and ends with 0 when all is well", func() {
		code, out := howdah("status", "training", "--directories")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(And(
			ContainSubstring("FileServer "+namespace+"/training  Ready  2 of 2 data servers"),
			ContainSubstring("unet3d  2 directories"), ContainSubstring("train/3"), Not(ContainSubstring("Hidden")), Not(ContainSubstring("\x1b")),
		))
		code, out = howdah("status", "-o", "json")
		Expect(code).To(Equal(command.CodeWell), out)
		var status view.Status
		Expect(json.Unmarshal([]byte(out), &status)).To(Succeed())
		Expect(status.FileServers).To(HaveLen(1))
		Expect(status.FileServers[0].Servers).To(HaveLen(2))
		code, out = howdah("explain", "unet3d")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(ContainSubstring("FileShare " + namespace + "/unet3d  Ready"))
	})

	It("shows viewers what the status of their objects has, and says which right is missing", func() {
		code, out := howdah("status", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(And(
			ContainSubstring("unet3d  2 directories"), ContainSubstring("training-1  Serving"),
			ContainSubstring("Hidden: you may not list dataservers.internal.howdah.io, sharedirectories.internal.howdah.io, "+
				"shareattachments.internal.howdah.io in namespace "+namespace+" (the ClusterRole howdah-support"),
		))
		code, out = howdah("explain", "fileshare/unet3d", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeWell), out)
		code, out = howdah("status", "--as", "plugin-unprivileged")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(MatchRegexp("you may not list .*fileservers.howdah.io.* in namespace " + namespace))
	})

	It("gives a mount command and manifests that the API server takes", func() {
		code, out := howdah("mount", "unet3d")
		Expect(code).To(Equal(command.CodeWell), out)
		var share v1alpha1.FileShare
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "unet3d"}, &share)).To(Succeed())
		Expect(out).To(ContainSubstring(share.Status.Mount.Command))
		other := newNamespace()
		code, out = howdah("mount", "unet3d", "--manifest-for", other)
		Expect(code).To(Equal(command.CodeWell), out)
		documents := strings.Split(strings.TrimPrefix(out, "---\n"), "---\n")
		Expect(documents).To(HaveLen(2))
		createFrom(documents[0], &corev1.PersistentVolume{})
		createFrom(documents[1], &corev1.PersistentVolumeClaim{})
		exists(&corev1.PersistentVolumeClaim{}, other, "unet3d")
		code, out = howdah("mount", "nothing")
		Expect(code).To(Equal(command.CodeError))
		Expect(out).To(ContainSubstring(`there is no fileshare "nothing" in namespace ` + namespace))
	})

	It("explains why something is not Ready, and ends with 4", func() {
		create(builders.FileShare(namespace, "lost", "absent").Path("/lost").Build())
		Eventually(func() string {
			code, out := howdah("explain", "fileshare/lost")
			Expect(code).To(Equal(command.CodeNotWell), out)
			return out
		}, timeout, "200ms").Should(And(ContainSubstring("Placed: FileServerNotFound"), ContainSubstring("Create the FileServer")))
		code, out := howdah("status")
		Expect(code).To(Equal(command.CodeNotWell), out)
		code, out = howdah("explain", "fileserver/absent")
		Expect(code).To(Equal(command.CodeError), out)
	})

	It("shows who owns what of a share, and what placement would do with more, by the code that does it", func() {
		code, out := howdah("tree", "unet3d")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(And(MatchRegexp(`training-1 +Serving +2 `), MatchRegexp(`0  training-[01]`), ContainSubstring("/"+namespace+"\n└─ train/\n")))
		code, out = howdah("tree", "unet3d", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(And(MatchRegexp(`training-1 +Serving +2 `), ContainSubstring("Hidden: you may not list sharedirectories.internal.howdah.io")))

		code, out = howdah("plan", "mkdir", "unet3d", "train/4", "train/5", "-o", "json")
		Expect(code).To(Equal(command.CodeWell), out)
		var plan view.Plan
		Expect(json.Unmarshal([]byte(out), &plan)).To(Succeed())
		change(exists(&v1alpha1.FileShare{}, namespace, "unet3d"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"train/{0..5}"} })
		readyShare(namespace, "unet3d")
		made := directoriesOf(namespace, "unet3d")
		Expect(plan.Directories).To(HaveLen(2))
		for _, d := range plan.Directories {
			Expect(made[d.Path].Spec.DataServerRef.Name).To(Equal(d.Server), "what was planned for %s is what came of it", d.Path)
		}
		code, out = howdah("plan", "scale", "training", "--replicas", "1")
		Expect(code).To(Equal(command.CodeNotWell), out)
		Expect(out).To(ContainSubstring("Refused"))
		code, out = howdah("plan", "mkdir", "unet3d", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeError), out)
		Expect(out).To(ContainSubstring("ask for the ClusterRole howdah-support"))
	})

	It("makes benchmarks, and reports what came of them", func() {
		code, out := howdah("bench", "run", "unet3d", "--accelerators", "2", "--clients", "2", "--samples", "168", "--sample-size", "400k", "--wait=false")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(MatchRegexp(`mlperfstoragejob/unet3d-\w{5} made`))
		code, out = howdah("bench", "run", "unet3d", "--accelerators", "3", "--clients", "2")
		Expect(code).To(Equal(command.CodeError), out)
		Expect(out).To(ContainSubstring("accelerator.count must be a multiple of clients"))
		code, out = howdah("bench", "report", "--share", "unet3d")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(ContainSubstring("unet3d with 2 A100, 2 clients"))
	})

	It("says which right is missing to ask servers for their clients, and what the status has instead", func() {
		code, out := howdah("clients", "training", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(And(
			ContainSubstring("you may not get pods/proxy in namespace "+namespace), ContainSubstring("Could not ask: "),
		))
		// There is nothing at the addresses of these pods: that is not a matter of rights.
		_, out = howdah("clients")
		Expect(out).To(And(ContainSubstring("Could not ask: training-0"), Not(ContainSubstring("you may not"))))
		code, out = howdah("clients", "absent")
		Expect(code).To(Equal(command.CodeError), out)
	})

	It("makes support bundles with objects and without anything of a Secret", func() {
		var secrets corev1.SecretList
		Expect(admin.List(ctx, &secrets, client.InNamespace(namespace))).To(Succeed())
		canary := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "canary"}, StringData: map[string]string{"password": "canary-of-a-secret"}}
		create(canary)
		Expect(secrets.Items).NotTo(BeEmpty(), "the operator makes keys and certificates")
		secrets.Items = append(secrets.Items, *canary)
		change(exists(&corev1.Pod{}, namespace, "training-0"), func(p *corev1.Pod) {
			p.Annotations = map[string]string{"example.com/token": "canary-of-a-secret"}
		})
		file := filepath.Join(GinkgoT().TempDir(), "bundle.tar.gz")
		code, out := howdah("support-bundle", "--file", file)
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(MatchRegexp(`bundle.tar.gz: \d\d+ objects`))
		files := unpack(file)
		names := slices.Sorted(maps.Keys(files))
		inside := func(name string) string {
			for n, content := range files {
				if strings.HasSuffix(n, "/"+name) {
					return content
				}
			}
			Fail(name + " is not in the bundle: " + strings.Join(names, ", "))
			return ""
		}
		Expect(inside("status.txt")).To(ContainSubstring("FileServer " + namespace + "/training"))
		Expect(inside("explain.txt")).To(ContainSubstring("FileServerNotFound"))
		Expect(inside("objects/" + namespace + "/sharedirectories.json")).To(ContainSubstring(`"path": "train/0"`))
		Expect(inside("objects/" + namespace + "/pods.json")).To(And(ContainSubstring("training-0"), ContainSubstring(`"example.com/token": "REDACTED"`)))
		Expect(inside("version.json")).To(ContainSubstring("gitVersion"))
		Expect(strings.Join(names, " ")).NotTo(ContainSubstring("secrets"))
		for name, content := range files {
			Expect(content).NotTo(ContainSubstring("canary-of-a-secret"), name)
			for _, secret := range secrets.Items {
				for key, value := range secret.Data {
					for _, form := range []string{string(value), base64.StdEncoding.EncodeToString(value), hex.EncodeToString(value)} {
						Expect(strings.Contains(content, form)).To(BeFalse(), "%s has %s of Secret %s", name, key, secret.Name)
					}
				}
			}
		}
		code, out = howdah("support-bundle", "--file", file)
		Expect(code).To(Equal(command.CodeError), "a file that is there is not written over: %s", out)
		code, out = howdah("support-bundle", "--file", file+"2", "--as", "plugin-viewer")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(ContainSubstring("not included: dataservers of " + namespace))
	})

	It("completes names", func() {
		code, out := howdah("__complete", "mount", "")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(ContainSubstring("unet3d\n"))
	})
})

// createFrom creates an object from its text.
func createFrom(document string, into client.Object) {
	GinkgoHelper()
	Expect(yaml.UnmarshalStrict([]byte(document), into)).To(Succeed())
	create(into)
}

// unpack is all that is in a tar.gz, by name.
func unpack(file string) map[string]string {
	GinkgoHelper()
	opened, err := os.Open(file)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = opened.Close() }()
	zip, err := gzip.NewReader(opened)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(reader)
		Expect(err).NotTo(HaveOccurred())
		files[header.Name] = string(content)
	}
}
