package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/plugin/bundle"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
)

// Limits of a bundle.
const (
	logLines, logBytes = 5000, 4 << 20
	maxObjects         = 20_000
)

// collected are the lists in a bundle, by their path in the API below a namespace. Secrets and ConfigMaps are not among them, and package
// bundle would refuse them.
var collected = []struct{ api, plural, selector string }{
	{"/apis/howdah.io/v1alpha1", "fileservers", ""},
	{"/apis/howdah.io/v1alpha1", "fileshares", ""},
	{"/apis/howdah.io/v1alpha1", "filesharesnapshots", ""},
	{"/apis/howdah.io/v1alpha1", "filesharesnapshotschedules", ""},
	{"/apis/howdah.io/v1alpha1", "mlperfstoragejobs", ""},
	{"/apis/internal.howdah.io/v1alpha1", "dataservers", ""},
	{"/apis/internal.howdah.io/v1alpha1", "shareexports", ""},
	{"/apis/internal.howdah.io/v1alpha1", "shareattachments", ""},
	{"/apis/internal.howdah.io/v1alpha1", "sharedirectories", ""},
	{"/apis/internal.howdah.io/v1alpha1", "sharesnapshots", ""},
	{"/apis/internal.howdah.io/v1alpha1", "sharestorages", ""},
	{"/apis/internal.howdah.io/v1alpha1", "stewards", ""},
	{"/api/v1", "pods", ours},
	{"/api/v1", "services", ours},
	{"/api/v1", "persistentvolumeclaims", ours},
	{"/apis/apps/v1", "statefulsets", ours},
	{"/apis/apps/v1", "deployments", ours},
	{"/apis/policy/v1", "poddisruptionbudgets", ours},
	{"/apis/networking.k8s.io/v1", "networkpolicies", ours},
	{"/apis/coordination.k8s.io/v1", "leases", ours},
	{"/api/v1", "events", ""},
}

// ofCluster are the lists of kinds without a namespace.
var ofCluster = []struct{ api, plural, selector string }{
	{"/api/v1", "nodes", ""},
	{"/api/v1", "persistentvolumes", ours},
	{"/apis/storage.k8s.io/v1", "storageclasses", ""},
	{"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", ours},
}

// ours selects what belongs to Howdah.
const ours = "app.kubernetes.io/name=howdah"

func newBundle(o *options) *cobra.Command {
	file, operator := "", "howdah-system"
	command := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write a tar.gz of objects, events and logs for a support request; without Secrets",
		Long: "Write a tar.gz of Howdah's objects and events, the logs of its pods, and the output of status and explain. Secrets and ConfigMaps are\n" +
			"not read. Values of environment variables, other programs' annotations, keys, certificates, tokens and passwords are removed. Names of\n" +
			"namespaces, shares, directories and nodes stay, and so do addresses: check the bundle before you share it.",
		Example: "  kubectl howdah support-bundle -n storage\n" +
			"  kubectl howdah support-bundle -A --file /tmp/howdah.tar.gz",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			c, namespace, err := o.connect()
			if err != nil {
				return err
			}
			folder := "howdah-support-" + o.now().UTC().Format("20060102-150405")
			if file == "" {
				file = folder + ".tar.gz"
			}
			to, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			b := &bundler{options: o, cluster: c, archive: bundle.New(to, folder, o.now())}
			err = b.collect(command.Context(), namespace, operator)
			for _, end := range []func() error{b.archive.Close, to.Close} {
				if closeErr := end(); err == nil {
					err = closeErr
				}
			}
			if err != nil {
				_ = os.Remove(file) // Half a bundle could be mistaken for a whole one.
				return err
			}
			fmt.Fprintf(o.out, "%s: %d objects, %d logs\n", file, b.objects, b.logs)
			for _, missing := range b.missing {
				fmt.Fprintf(o.err, "not included: %s\n", missing)
			}
			return nil
		},
	}
	command.Flags().StringVarP(&file, "file", "f", "", "file to write; default: howdah-support-TIME.tar.gz in the current folder")
	command.Flags().StringVar(&operator, "operator-namespace", operator, "Kubernetes namespace of the operator")
	return command
}

// bundler fills a bundle.
type bundler struct {
	*options
	cluster       *cluster.Cluster
	archive       *bundle.Archive
	objects, logs int
	missing       []string
}

func (b *bundler) collect(ctx context.Context, namespace, operator string) error {
	w := b.world(namespace)
	err := b.cluster.Read(ctx, w, namespace, view.ResourceFileServers, view.ResourceFileShares, view.ResourceSnapshots, view.ResourceSchedules, view.ResourceJobs, view.ResourceDataServers, view.ResourceShareExports,
		view.ResourceShareAttachments, view.ResourceShareDirectories, view.ResourcePods, view.ResourceClaims, view.ResourceEvents)
	if err != nil {
		return err
	}
	if err := b.reports(w); err != nil {
		return err
	}
	namespaces := []string{namespace}
	if namespace != "" && namespace != operator {
		namespaces = append(namespaces, operator)
	}
	for _, in := range namespaces {
		fmt.Fprintf(b.err, "reading objects of %s\n", cmpNamespace(in))
		for _, list := range collected {
			if in == operator && in != namespace && list.plural == "sharedirectories" {
				continue
			}
			if err := b.list(ctx, list.api, in, list.plural, list.selector); err != nil {
				return err
			}
		}
	}
	for _, list := range ofCluster {
		if err := b.list(ctx, list.api, "", list.plural, list.selector); err != nil {
			return err
		}
	}
	if namespace != "" && namespace != operator {
		if err := b.cluster.ReadOnly(ctx, w, operator, ours, view.ResourcePods); err != nil {
			return err
		}
	}
	fmt.Fprintln(b.err, "reading logs")
	if err := b.podLogs(ctx, w); err != nil {
		return err
	}
	if version, err := b.cluster.Raw(ctx, "/version"); err == nil {
		if err := b.archive.AddText("version.json", string(version)); err != nil {
			return err
		}
	}
	return b.archive.AddText("missing.txt", strings.Join(b.missing, "\n")+"\n")
}

// reports adds the output of status and explain.
func (b *bundler) reports(w *view.World) error {
	page := text.Page{Width: 160}
	if err := b.archive.AddText("status.txt", view.NewStatus(w, false).Text(page, false)); err != nil {
		return err
	}
	var explanations []view.Explanation
	for i := range w.FileServers {
		explanations = append(explanations, view.ExplainFileServer(w, &w.FileServers[i]))
	}
	for i := range w.FileShares {
		explanations = append(explanations, view.ExplainFileShare(w, &w.FileShares[i]))
	}
	for i := range w.Snapshots {
		explanations = append(explanations, view.ExplainSnapshot(w, &w.Snapshots[i]))
	}
	for i := range w.Schedules {
		explanations = append(explanations, view.ExplainSchedule(w, &w.Schedules[i]))
	}
	for i := range w.Jobs {
		explanations = append(explanations, view.ExplainJob(w, &w.Jobs[i]))
	}
	var unwell strings.Builder
	for _, e := range explanations {
		if e.Health != view.Well {
			e.Hidden = nil
			unwell.WriteString(e.Text(page) + "\n")
		}
	}
	return b.archive.AddText("explain.txt", unwell.String())
}

// list adds a list to the bundle, and notes in missing what the user may not read.
func (b *bundler) list(ctx context.Context, api, namespace, plural, selector string) error {
	at, where := api, "cluster"
	if namespace != "" {
		at, where = api+"/namespaces/"+namespace, namespace
	} else if slices.ContainsFunc(collected, func(l struct{ api, plural, selector string }) bool { return l.plural == plural }) {
		where = "all-namespaces"
	}
	next := ""
	for part := 0; ; part++ {
		raw, err := b.cluster.RawPage(ctx, at+"/"+plural, selector, next)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			b.missing = append(b.missing, fmt.Sprintf("%s of %s: %v", plural, where, err))
			return nil
		}
		if err != nil {
			return cluster.Explain(err)
		}
		name := plural
		if part > 0 {
			name += fmt.Sprintf("-%d", part)
		}
		n, err := b.archive.AddList(path.Join("objects", where, name+".json"), raw)
		if err != nil {
			return err
		}
		b.objects += n
		var head struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return err
		}
		if next = head.Metadata.Continue; next == "" {
			return nil
		}
		if (part+1)*cluster.Page >= maxObjects {
			b.missing = append(b.missing, fmt.Sprintf("%s of %s after the first %d", plural, where, maxObjects))
			return nil
		}
	}
}

// podLogs adds the end of the log of each container of Howdah's pods, and of its previous run.
func (b *bundler) podLogs(ctx context.Context, w *view.World) error {
	for i := range w.Pods {
		pod := &w.Pods[i]
		if pod.Labels["app.kubernetes.io/name"] != "howdah" && pod.Labels[v1alpha1.FileServerLabel] == "" && pod.Labels[v1alpha1.ComponentLabel] != naming.ComponentBenchmark {
			continue
		}
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if err := b.log(ctx, pod, c.Name, false); err != nil {
				return err
			}
			if c.RestartCount > 0 {
				if err := b.log(ctx, pod, c.Name, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *bundler) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) error {
	name := container + ".log"
	if previous {
		name = container + ".previous.log"
	}
	tail, err := b.cluster.Log(ctx, pod.Namespace, pod.Name, container, logLines, logBytes, previous)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.missing = append(b.missing, fmt.Sprintf("log %s of pod %s/%s: %v", name, pod.Namespace, pod.Name, err))
		return nil
	}
	b.logs++
	return b.archive.AddText(path.Join("logs", pod.Namespace, pod.Name, name), string(tail))
}
