package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/metrics"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/builders"
	"github.com/howdah/howdah/test/exposition"
	"github.com/howdah/howdah/test/freeport"
	"github.com/howdah/howdah/test/tokens"
)

func freeAddress() string {
	GinkgoHelper()
	address, err := freeport.Address()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// peopleRoles are the roles of config/rbac/people.yaml, by name.
func peopleRoles() map[string]*rbacv1.ClusterRole {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "people.yaml"))
	Expect(err).NotTo(HaveOccurred())
	roles := map[string]*rbacv1.ClusterRole{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		role := &rbacv1.ClusterRole{}
		Expect(yaml.UnmarshalStrict([]byte(document), role)).To(Succeed())
		roles[role.Name] = role
	}
	return roles
}

var _ = Describe("People", Ordered, func() {
	var namespace string

	// bind gives a user of the role's name what Kubernetes' role of that name has with Howdah installed. The controller that
	// gathers aggregated roles is not here: the user gets each role that it would gather.
	bind := func(role string) string {
		GinkgoHelper()
		user := "a-" + role
		gathered := []string{role}
		for seen := 0; seen < len(gathered); seen++ {
			var of rbacv1.ClusterRole
			Expect(admin.Get(ctx, client.ObjectKey{Name: gathered[seen]}, &of)).To(Succeed())
			if of.AggregationRule == nil {
				continue
			}
			for i := range of.AggregationRule.ClusterRoleSelectors {
				selector, err := metav1.LabelSelectorAsSelector(&of.AggregationRule.ClusterRoleSelectors[i])
				Expect(err).NotTo(HaveOccurred())
				var all rbacv1.ClusterRoleList
				Expect(admin.List(ctx, &all, client.MatchingLabelsSelector{Selector: selector})).To(Succeed())
				for _, more := range all.Items {
					if !slices.Contains(gathered, more.Name) {
						gathered = append(gathered, more.Name)
					}
				}
			}
		}
		for _, name := range gathered {
			create(&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "people-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			})
		}
		return user
	}
	may := func(user, verb, group, resource string) bool {
		GinkgoHelper()
		resource, sub, _ := strings.Cut(resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: sub,
			},
		}}
		Expect(admin.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}

	BeforeAll(func() {
		namespace = newNamespace()
		for _, role := range peopleRoles() {
			create(role)
			DeferCleanup(func() { Expect(client.IgnoreNotFound(admin.Delete(ctx, role))).To(Succeed()) })
		}
	})

	It("who view, edit or administer a Kubernetes namespace do so with Howdah's kinds, and never with the internal ones", func() {
		var (
			kinds    = []string{"fileservers", "fileshares", "filesharesnapshots", "filesharesnapshotschedules", "mlperfstoragejobs"}
			statuses = []string{
				"fileservers/status", "fileshares/status", "filesharesnapshots/status", "filesharesnapshotschedules/status", "mlperfstoragejobs/status",
			}
			internal = []string{
				"dataservers", "shareattachments", "sharedirectories", "shareexports", "sharesnapshots", "sharestorages", "stewards",
				"dataservers/status", "sharedirectories/status", "shareexports/status", "sharestorages/status", "stewards/status", "any",
			}
			reads  = []string{"get", "list", "watch"}
			writes = []string{"create", "update", "patch", "delete", "deletecollection"}
		)
		for role, writable := range map[string][]string{"view": nil, "edit": kinds[1:], "admin": kinds} {
			user := bind(role)
			// The authorizer learns of new bindings by a watch.
			Eventually(func() bool { return may(user, "list", "howdah.io", "fileservers") }, timeout, "50ms").Should(BeTrue(), role)
			for _, kind := range kinds {
				for _, verb := range reads {
					Expect(may(user, verb, "howdah.io", kind)).To(BeTrue(), "%s %s %s", role, verb, kind)
				}
				for _, verb := range writes {
					Expect(may(user, verb, "howdah.io", kind)).To(Equal(slices.Contains(writable, kind)), "%s %s %s", role, verb, kind)
				}
			}
			for _, status := range statuses {
				Expect(may(user, "get", "howdah.io", status)).To(BeTrue(), "%s %s", role, status)
				Expect(may(user, "patch", "howdah.io", status)).To(BeFalse(), "%s %s", role, status)
			}
			Expect(may(user, "patch", "howdah.io", "fileservers/scale")).To(Equal(role == "admin"), role)
			for _, kind := range internal {
				for _, verb := range slices.Concat(reads, writes) {
					Expect(may(user, verb, "internal.howdah.io", kind)).To(BeFalse(), "%s %s %s", role, verb, kind)
				}
			}
		}
	})

	It("who support others read the internal kinds", func() {
		user := bind("howdah-support")
		Eventually(func() bool { return may(user, "list", "internal.howdah.io", "sharedirectories") }, timeout, "50ms").Should(BeTrue())
		Expect(may(user, "update", "internal.howdah.io", "sharedirectories")).To(BeFalse())
		Expect(may(user, "get", "howdah.io", "fileshares")).To(BeFalse(), "that is what view is for")
	})

	It("without the right don't read the operator's metrics, and those with it do", func() {
		for _, account := range []string{"prometheus", "unprivileged"} {
			create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "metrics-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "howdah-metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "prometheus"}},
		}
		create(binding)
		DeferCleanup(func() { Expect(admin.Delete(ctx, binding)).To(Succeed()) })
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: time.Minute}
		ask := func(scheme, token string) string {
			request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, scheme+"://"+metricsAddress+"/metrics", nil)
			Expect(err).NotTo(HaveOccurred())
			if token != "" {
				request.Header.Set("Authorization", "Bearer "+token)
			}
			response, err := web.Do(request)
			if err != nil {
				return err.Error()
			}
			defer func() { _ = response.Body.Close() }()
			text, _ := io.ReadAll(response.Body) // what was not HTTPS is answered and cut off
			return fmt.Sprintf("%d %s", response.StatusCode, text)
		}
		tokenOf := func(account string) string {
			own, err := tokens.Account(ctx, admin, config, namespace, account)
			Expect(err).NotTo(HaveOccurred())
			return own.BearerToken
		}
		Eventually(func() string { return ask("https", tokenOf("prometheus")) }, timeout, "200ms").
			Should(And(HavePrefix("200 "), ContainSubstring("controller_runtime_reconcile_total")))
		// What it tells is what the catalogue says, and of an object for as long as it is there.
		server := builders.FileServer(namespace, "measured").Replicas(1).Class(standardClass).Build()
		create(server)
		sample := fmt.Sprintf("howdah_object_condition{kind=\"FileServer\",name=\"measured\",namespace=%q,status=\"true\",type=\"Ready\"} ", namespace)
		scrape := func() string { return ask("https", tokenOf("prometheus")) }
		Eventually(scrape, timeout, "200ms").Should(And(ContainSubstring(sample), ContainSubstring("howdah_objects_collected 1\n")))
		rare := slices.DeleteFunc(metrics.All(), func(m *metrics.Metric) bool { return m == metrics.ObjectCondition || m == metrics.FileServerWanted })
		Expect(exposition.Check(strings.TrimPrefix(scrape(), "200 "), metrics.Operator, rare...)).To(Succeed())
		Expect(admin.Delete(ctx, server)).To(Succeed())
		Eventually(scrape, timeout, "200ms").ShouldNot(ContainSubstring(sample))
		Expect(ask("https", "")).To(HavePrefix("401 "))
		Expect(ask("https", "made-up")).To(HavePrefix("401 "))
		Expect(ask("https", tokenOf("unprivileged"))).To(And(HavePrefix("403 "), ContainSubstring(":unprivileged may not get /metrics")))
		Expect(ask("http", tokenOf("prometheus"))).To(HavePrefix("400 "), "not in the clear")
	})

	It("who are let in by access rules are let in by the NetworkPolicies of the FileServer's pods", func() {
		create(builders.FileServer(namespace, "netted").Replicas(1).Class(standardClass).Build())
		create(builders.FileShare(namespace, "first", "netted").Access("", "", "10.0.7.0/24").Build())
		blocks := func(name string) []string {
			var policy networkingv1.NetworkPolicy
			if err := admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &policy); err != nil {
				return []string{err.Error()}
			}
			found := []string{}
			for _, rule := range policy.Spec.Ingress {
				if !isForNFS(rule) {
					continue
				}
				for _, peer := range rule.From {
					if peer.IPBlock != nil {
						found = append(found, peer.IPBlock.CIDR)
					}
				}
			}
			return found
		}
		for _, name := range []string{naming.NamespaceServers("netted"), naming.DataServerAccount("netted")} {
			Eventually(blocks, timeout, "50ms").WithArguments(name).Should(ConsistOf("10.0.7.0/24"), name)
		}
		create(builders.FileShare(namespace, "second", "netted").Access("", "", "10.0.9.1").Build())
		for _, name := range []string{naming.NamespaceServers("netted"), naming.DataServerAccount("netted")} {
			Eventually(blocks, timeout, "50ms").WithArguments(name).Should(ConsistOf("10.0.7.0/24", "10.0.9.1/32"), name)
		}
	})
})

// isForNFS tells whether a rule lets into the port of NFS clients. Nodes may also ask for figures, at another one.
func isForNFS(rule networkingv1.NetworkPolicyIngressRule) bool {
	return slices.ContainsFunc(rule.Ports, func(port networkingv1.NetworkPolicyPort) bool { return port.Port.IntValue() == v1alpha1.NFSPort })
}
