package main

import (
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

func TestRulesArePartedByResource(t *testing.T) {
	core := func(resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list"}}
	}
	cluster, namespaced, err := split([]rbacv1.PolicyRule{core("nodes", "pods", "persistentvolumes"), core("pods/status"), core("namespaces", "nodes/status")})
	if err != nil {
		t.Fatal(err)
	}
	if want := []rbacv1.PolicyRule{core("nodes", "persistentvolumes"), core("namespaces", "nodes/status")}; !reflect.DeepEqual(cluster, want) {
		t.Errorf("without a namespace: %v", cluster)
	}
	if want := []rbacv1.PolicyRule{core("pods"), core("pods/status")}; !reflect.DeepEqual(namespaced, want) {
		t.Errorf("with a namespace: %v", namespaced)
	}
	if _, _, err := split([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}); err == nil {
		t.Error("a lost rule is not reported")
	}
}
