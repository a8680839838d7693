package volumes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/test/builders"
)

func claim(name, request, capacity string, phase corev1.PersistentVolumeClaimPhase) corev1.PersistentVolumeClaim {
	list := func(q string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(q)}
	}
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Resources.Requests, c.Status.Phase = list(request), phase
	if capacity != "" {
		c.Status.Capacity = list(capacity)
	}
	return c
}

func templateOf(class, size string) *appsv1.StatefulSet {
	template := claim("data-0", size, "", "")
	template.Spec.StorageClassName = &class
	return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{template}}}
}

func TestStorage(t *testing.T) {
	plain, expandable, standard := builders.StorageClass("plain").Build(), builders.StorageClass("big").Expandable().Build(), builders.StorageClass("std").Default().Build()
	older, newer := builders.StorageClass("a").Default().Build(), builders.StorageClass("b").Default().Build()
	newer.CreationTimestamp = metav1.Now()
	tests := map[string]struct {
		fileServer *builders.FileServerBuilder
		classes    []*storagev1.StorageClass
		set        *appsv1.StatefulSet
		claims     []corev1.PersistentVolumeClaim
		wantClass  string
		wantSize   string
		wantGrow   []string
		wantFault  string
	}{
		"the named class":            {fileServer: builders.FileServer("n", "fs").Class("plain"), classes: []*storagev1.StorageClass{plain, standard}, wantClass: "plain", wantSize: "1Gi"},
		"the default class":          {fileServer: builders.FileServer("n", "fs"), classes: []*storagev1.StorageClass{plain, standard}, wantClass: "std", wantSize: "1Gi"},
		"the newest of two defaults": {fileServer: builders.FileServer("n", "fs"), classes: []*storagev1.StorageClass{older, newer}, wantClass: "b", wantSize: "1Gi"},
		"no such class":              {fileServer: builders.FileServer("n", "fs").Class("gold"), classes: []*storagev1.StorageClass{plain, standard}, wantSize: "1Gi", wantFault: `there is no StorageClass "gold"; there are: plain, std; make one of this name, or delete this FileServer and make it again with another (the field can't be changed)`},
		"no default class":           {fileServer: builders.FileServer("n", "fs"), classes: []*storagev1.StorageClass{plain}, wantSize: "1Gi", wantFault: "is unset and the cluster has no default StorageClass; there are: plain; make one the default (kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true), or delete this FileServer"},
		"no class at all":            {fileServer: builders.FileServer("n", "fs"), wantSize: "1Gi", wantFault: "the cluster has no StorageClass at all; make one the default"},
		"an existing template stays": {fileServer: builders.FileServer("n", "fs").Size("4Gi"), classes: []*storagev1.StorageClass{standard}, set: templateOf("plain", "1Gi"), wantClass: "plain", wantSize: "1Gi"},
		"a class that is gone stays": {fileServer: builders.FileServer("n", "fs").Class("gone"), set: templateOf("gone", "1Gi"), wantClass: "gone", wantSize: "1Gi"},
		"claims grow where they can": {
			fileServer: builders.FileServer("n", "fs").Size("4Gi"), classes: []*storagev1.StorageClass{expandable}, set: templateOf("big", "1Gi"),
			claims: []corev1.PersistentVolumeClaim{
				claim("data-0-fs-1", "1Gi", "1Gi", corev1.ClaimBound), claim("data-0-fs-0", "1Gi", "1Gi", corev1.ClaimBound),
				claim("data-0-fs-2", "8Gi", "8Gi", corev1.ClaimBound),
			},
			wantClass: "big", wantSize: "1Gi", wantGrow: []string{"data-0-fs-0", "data-0-fs-1"},
		},
		"claims can't grow": {
			fileServer: builders.FileServer("n", "fs").Size("4Gi"), classes: []*storagev1.StorageClass{plain}, set: templateOf("plain", "1Gi"),
			claims:    []corev1.PersistentVolumeClaim{claim("data-0-fs-0", "1Gi", "1Gi", corev1.ClaimBound)},
			wantClass: "plain", wantSize: "1Gi", wantFault: `StorageClass "plain" does not allow volumes to grow (allowVolumeExpansion); if its driver can expand volumes, set that to true at the class, else set the size back to 1Gi; the claims keep their size: data-0-fs-0`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &Storage{Observation: backendapi.Observation{FileServer: tc.fileServer.Build(), StatefulSet: tc.set}, All: map[string]corev1.PersistentVolumeClaim{}}
			for _, class := range tc.classes {
				o.Classes = append(o.Classes, *class)
			}
			for _, c := range tc.claims {
				o.All[c.Name] = c
			}
			got := o.choose()
			if got.className != tc.wantClass || got.templateSize.String() != tc.wantSize {
				t.Errorf("template %q of %s, want %q of %s", got.className, got.templateSize.String(), tc.wantClass, tc.wantSize)
			}
			if diff := cmp.Diff(tc.wantGrow, got.grow); diff != "" {
				t.Errorf("grow (-want +got):\n%s", diff)
			}
			if (got.fault != nil) != (tc.wantFault != "") || got.fault != nil && !strings.Contains(got.fault.Message, tc.wantFault) {
				t.Errorf("fault %+v, want %q", got.fault, tc.wantFault)
			}
		})
	}
}

func TestStorageCondition(t *testing.T) {
	bound := func(name string) corev1.PersistentVolumeClaim { return claim(name, "1Gi", "1Gi", corev1.ClaimBound) }
	tests := map[string]struct {
		claims  []corev1.PersistentVolumeClaim
		reason  string
		message string
	}{
		"some are another program's": {[]corev1.PersistentVolumeClaim{bound("data-0-fs-0")}, v1alpha1.ReasonClaimsPending, "1 of 2 claims are not marked as this FileServer's, " +
			"so they are not watched and can't grow: data-0-fs-1; if they are the ones that it is to have: kubectl -n n label pvc data-0-fs-1 " +
			"app.kubernetes.io/component=data-server app.kubernetes.io/managed-by=howdah howdah.io/file-server=fs && kubectl -n n annotate pvc data-0-fs-1 howdah.io/owner=FileServer/n/fs"},
		"all bound":  {[]corev1.PersistentVolumeClaim{bound("data-0-fs-0"), bound("data-0-fs-1")}, v1alpha1.ReasonReady, "2 of 2 claims are bound"},
		"one waits":  {[]corev1.PersistentVolumeClaim{bound("data-0-fs-0"), claim("data-0-fs-1", "1Gi", "", corev1.ClaimPending)}, v1alpha1.ReasonClaimsPending, "1 of 2 claims are not bound: data-0-fs-1"},
		"one is not": {[]corev1.PersistentVolumeClaim{bound("data-0-fs-1")}, v1alpha1.ReasonClaimsPending, "1 of 2 claims are not bound: data-0-fs-0 (not made yet)"},
		"one grows":  {[]corev1.PersistentVolumeClaim{bound("data-0-fs-0"), claim("data-0-fs-1", "1Gi", "512Mi", corev1.ClaimBound)}, v1alpha1.ReasonProgressing, "1 of 2 claims are growing to 1Gi: data-0-fs-1 from 512Mi"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("n", "fs").Build()}, All: map[string]corev1.PersistentVolumeClaim{}}
			for _, c := range tc.claims {
				o.All[c.Name] = c
			}
			if strings.HasPrefix(name, "some are another") {
				o.Unmarked = map[string]bool{"data-0-fs-1": true}
			}
			got := o.Condition(2, backendapi.Decision{})
			if got.Reason != tc.reason || got.Message != tc.message {
				t.Errorf("got %s %q, want %s %q", got.Reason, got.Message, tc.reason, tc.message)
			}
		})
	}
}
