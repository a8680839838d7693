package builders

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// ReadyConditions are those of a data server that answers.
func ReadyConditions() []metav1.Condition { return isTrue(v1alpha1.ConditionReady) }

// ServingConditions are those of an export that is served.
func ServingConditions() []metav1.Condition { return isTrue(internalv1.ExportServing) }

// InventoriedConditions are those of a share whose directories are all known.
func InventoriedConditions() []metav1.Condition { return isTrue(v1alpha1.FileShareInventoried) }

func isTrue(kind string) []metav1.Condition {
	return []metav1.Condition{{
		Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "well", LastTransitionTime: metav1.Unix(1_700_000_000, 0),
	}}
}

// ShareExport makes the export of a share, open to everybody, that a data server serves. Its status has to be written after the rest.
func ShareExport(namespace, fileServer, share, server string) *internalv1.ShareExport {
	zero, generation := int64(0), int64(1)
	return &internalv1.ShareExport{
		TypeMeta: metav1.TypeMeta{APIVersion: internalv1.GroupVersion.String(), Kind: "ShareExport"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: naming.ShareExport(share, server), Generation: generation,
			Labels: map[string]string{
				v1alpha1.FileServerLabel: fileServer, v1alpha1.FileShareLabel: share, v1alpha1.DataServerLabel: server,
				v1alpha1.ManagedByLabel: v1alpha1.ManagedBy,
			},
		},
		Spec: internalv1.ShareExportSpec{
			FileServerRef: internalv1.FileServerReference{Name: fileServer},
			DataServerRef: internalv1.DataServerReference{Name: server},
			FileShareRef:  internalv1.FileShareReference{Name: share},
			UID:           &zero, GID: &zero, Mode: "0755", DataPolicy: internalv1.DataRetain,
			Access: []v1alpha1.AccessRule{{Clients: []string{"0.0.0.0/0", "::/0"}}},
		},
		Status: internalv1.ShareExportStatus{Conditions: ServingConditions(), ObservedGeneration: &generation, ExportIDs: []int32{1}},
	}
}
