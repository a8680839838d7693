package argocd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// application is the part of an Argo CD Application's status that this suite reads.
type application struct {
	Sync struct {
		Status   string `json:"status"`
		Revision string `json:"revision"`
	} `json:"sync"`
	Health struct {
		Status string `json:"status"`
	} `json:"health"`
	// OperationState is of the last sync.
	OperationState struct {
		Phase      string `json:"phase"`
		Message    string `json:"message"`
		StartedAt  string `json:"startedAt"`
		SyncResult struct {
			Revision string `json:"revision"`
		} `json:"syncResult"`
	} `json:"operationState"`
	ReconciledAt string `json:"reconciledAt"`
}

var applicationKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}

func newApplication(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(applicationKind)
	object.SetNamespace(argoNamespace)
	object.SetName(name)
	return object
}

func readApplication(ctx context.Context, name string) (application, error) {
	object := newApplication(name)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return application{}, err
	}
	var app application
	status, _, err := unstructured.NestedMap(object.Object, "status")
	if err != nil {
		return application{}, err
	}
	return app, runtime.DefaultUnstructuredConverter.FromUnstructured(status, &app)
}

// patchApplication applies a JSON merge patch.
func patchApplication(ctx context.Context, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return c.Patch(ctx, newApplication(name), client.RawPatch("application/merge-patch+json", text))
}

// refresh asks Argo CD to compare an Application with Git now, as a webhook does; by itself it does so every two minutes.
func refresh(ctx context.Context, name string) error {
	return patchApplication(ctx, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"argocd.argoproj.io/refresh": "normal"}}})
}

// refreshAll refreshes every Application.
func refreshAll(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "-n", argoNamespace, "annotate", "applications", "--all", "argocd.argoproj.io/refresh=normal", "--overwrite")
}

// eventuallyApplication waits until an Application matches. Argo CD can miss that a Deployment became Ready, until it compares again:
// every 20 s it is asked to.
func eventuallyApplication(ctx context.Context, name string, timeout time.Duration, matcher types.GomegaMatcher) {
	GinkgoHelper()
	var last application
	next := time.Now().Add(20 * time.Second)
	Eventually(ctx, func(ctx context.Context) (application, error) {
		if now := time.Now(); now.After(next) {
			next = now.Add(20 * time.Second)
			if err := refresh(ctx, name); err != nil {
				return application{}, err
			}
		}
		app, err := readApplication(ctx, name)
		if err == nil && (app.Sync != last.Sync || app.Health != last.Health) {
			fmt.Fprintf(GinkgoWriter, "%s: %s %s %s\n", name, app.Sync.Status, app.Health.Status, app.Sync.Revision)
			last = app
		}
		return app, err
	}).WithTimeout(scaled(timeout)).Should(matcher, "Application %s", name)
}

// beIn matches an Application of a sync status and health, at a revision of Git. "" matches everything.
func beIn(sync, health, revision string) types.GomegaMatcher {
	equal := func(want string) types.GomegaMatcher {
		if want == "" {
			return gstruct.Ignore()
		}
		return Equal(want)
	}
	return gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Sync":   gstruct.MatchAllFields(gstruct.Fields{"Status": equal(sync), "Revision": equal(revision)}),
		"Health": gstruct.MatchAllFields(gstruct.Fields{"Status": equal(health)}),
	})
}

// beSynced matches an Application that is Synced and Healthy, at a revision of Git unless that is "".
func beSynced(revision string) types.GomegaMatcher { return beIn("Synced", "Healthy", revision) }

// haveEnded matches an Application whose sync of a revision has ended, well or not.
func haveEnded(revision string) types.GomegaMatcher {
	return HaveField("OperationState", SatisfyAll(
		HaveField("Phase", BeElementOf("Succeeded", "Failed", "Error")),
		HaveField("SyncResult.Revision", revision)))
}
