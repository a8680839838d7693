package desired

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// dataServerAccess lets data servers read their own FileServer's objects and report their state, and nothing else. The
// API server's escalation check requires that the operator has every permission given here; see the RBAC markers of
// controllers/fileserver. A role applies to all pods of a service account; the admission policies (config/admission)
// restrict what each pod may write.
func dataServerAccess(in FileServerInput) []runtime.ApplyConfiguration {
	name := naming.DataServerAccount(in.name())
	names := in.dataServerNames()
	if len(names) == 0 {
		// A rule without names would mean every name.
		return account(in, name, naming.SelectDataServers(in.name()))
	}
	return account(in, name, naming.SelectDataServers(in.name()),
		rule(internalv1.GroupVersion.Group, "dataservers", names, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "dataservers/status", names, "patch"),
		// Their names are made from those of shares, so they can't be listed here; the policies have the rest.
		rule(internalv1.GroupVersion.Group, "shareexports", nil, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "shareexports/status", nil, "patch"),
	)
}

// namespaceServerAccess lets namespace servers read the shares and servers, write ShareDirectories, and elect a leader.
func namespaceServerAccess(in FileServerInput) []runtime.ApplyConfiguration {
	name := naming.NamespaceServers(in.name())
	rules := []*rbacv1ac.PolicyRuleApplyConfiguration{
		rule(v1alpha1.GroupVersion.Group, "fileshares", nil, "get", "list", "watch"),
		// The addresses that clients have of them.
		rule(v1alpha1.GroupVersion.Group, "fileservers", []string{in.name()}, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "dataservers", nil, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "shareexports", nil, "get", "list", "watch"),
		// What they have of the share.
		rule(internalv1.GroupVersion.Group, "shareexports/status", nil, "patch"),
		// Shares of other namespaces, which it can't read there.
		rule(internalv1.GroupVersion.Group, "shareattachments", nil, "get", "list", "watch"),
		rule(internalv1.GroupVersion.Group, "sharedirectories", nil, "get", "list", "watch", "create", "update", "delete"),
		rule(internalv1.GroupVersion.Group, "sharedirectories/status", nil, "update", "patch"),
		// RBAC can't restrict creation by name; the policies do.
		rule(coordinationv1.GroupName, "leases", nil, "create"),
		rule(coordinationv1.GroupName, "leases", []string{name}, "get", "update"),
	}
	if names := in.dataServerNames(); len(names) > 0 {
		// Whether they answer.
		rules = append(rules, rule(internalv1.GroupVersion.Group, "dataservers/status", names, "patch"))
	}
	return account(in, name, naming.SelectNamespaceServers(in.name()), rules...)
}

func rule(group, resource string, names []string, verbs ...string) *rbacv1ac.PolicyRuleApplyConfiguration {
	return rbacv1ac.PolicyRule().WithAPIGroups(group).WithResources(resource).WithResourceNames(names...).WithVerbs(verbs...)
}

func account(in FileServerInput, name string, selector map[string]string, rules ...*rbacv1ac.PolicyRuleApplyConfiguration) []runtime.ApplyConfiguration {
	return []runtime.ApplyConfiguration{
		corev1ac.ServiceAccount(name, in.namespace()).WithLabels(labels(selector)),
		rbacv1ac.Role(name, in.namespace()).WithLabels(labels(selector)).WithRules(rules...),
		rbacv1ac.RoleBinding(name, in.namespace()).WithLabels(labels(selector)).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(name)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(name).WithNamespace(in.namespace())),
	}
}
