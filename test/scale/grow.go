package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
	"github.com/howdah/howdah/test/spare"
	"github.com/howdah/howdah/test/verdict"
)

const (
	// storageKey is the label of nodes for data servers, and the taint of those that run nothing else (docs/operate/storage-nodes.md).
	storageKey = "node-role.kubernetes.io/storage"
	// grown is a FileServer and its share.
	grown            = "grown"
	grownMount       = "/m"
	grownDirectories = 12
	grownFiles       = 8
	readersEach      = 2
	// openSeconds is how long a reader has a file open with one data server, as a file that stays open keeps its directory from moving. The
	// size of files follows from it and the links.
	openSeconds = 2
	// growthLimit ends what hangs: servers that do not come, moves that are put off again and again.
	growthLimit = 20 * time.Minute
)

// growSteps counts the steps of a run: senders, each capped link and all together, what grow does besides, and the end.
func growSteps(capped int) int { return 1 + capped + 1 + 8 + 1 }

// growth is what a run with more servers has found out. Times are those of the client's node, in seconds.
type growth struct {
	links   []verdict.Link
	windows []verdict.Window
	samples []reader
	// before and after are when the job was measured; labelled, serving and moved when the nodes got their label, the last new server
	// served, and the last directory was with its new owner.
	before, after            span
	labelled, serving, moved float64
	directories, delayed     int
	// others are pods on storage-only nodes that are no data servers; wrong is what was not as it had to be.
	others, wrong []string
}

// span is from one moment to another.
type span struct{ from, to float64 }

// grow measures a job that reads through one mount before and after data servers on storage-only nodes join.
func (b *bench) grow(ctx context.Context, first, added []string, capBytes float64) (found growth, err error) {
	b.begin("a pod on each capped node that sends")
	if err := b.startSenders(ctx); err != nil {
		return found, err
	}
	if found.links, err = b.tryLinks(ctx, capBytes); err != nil || len(whyInvalid(found.links, nil)) > 0 {
		return found, err
	}
	for _, node := range b.nodes {
		b.drop(ctx, sender(node))
	}
	if err := b.makeStorageOnly(ctx, added); err != nil {
		return found, err
	}
	pod, err := b.prepareGrowth(ctx, first)
	if err != nil {
		return found, err
	}
	mounted, err := b.mount(ctx, pod)
	if err != nil {
		return found, err
	}
	b.begin("one data server, %d readers", readersEach*grownDirectories)
	if err := b.startReaders(ctx, pod); err != nil {
		return found, err
	}
	if found.before, err = b.window(ctx, pod, "1 data server", &found); err != nil {
		return found, err
	}
	if err := b.addServers(ctx, pod, first, added, &found); err != nil {
		return found, err
	}
	b.begin("%d data servers, the same readers", len(b.nodes))
	if found.after, err = b.window(ctx, pod, fmt.Sprintf("%d data servers", len(b.nodes)), &found); err != nil {
		return found, err
	}
	b.begin("looking what became of the client, its data and the nodes")
	return found, b.lookAfter(ctx, pod, mounted, added, &found)
}

// makeStorageOnly has nodes run nothing but what tolerates their taint. They do not have the label yet that brings data servers.
func (b *bench) makeStorageOnly(ctx context.Context, nodes []string) error {
	b.begin("%s run nothing else from now on", strings.Join(nodes, " and "))
	for _, args := range [][]string{
		append(append([]string{"taint", "nodes"}, nodes...), storageKey+"=:NoSchedule"),
		append(append([]string{"drain"}, nodes...), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=5m"),
		append([]string{"uncordon"}, nodes...),
		{"--namespace", "howdah-system", "rollout", "status", "deployment/howdah", "--timeout=5m"},
	} {
		if _, err := b.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// prepareGrowth makes a FileServer of one data server, its share, and a client with files in every directory.
func (b *bench) prepareGrowth(ctx context.Context, first []string) (pod string, err error) {
	b.begin("a data server on %s, and its share", strings.Join(first, " and "))
	if _, err := b.Kubectl(ctx, append(append([]string{"label", "nodes"}, first...), storageKey+"=")...); err != nil {
		return "", err
	}
	spec, err := b.storageOfGrowth(ctx)
	if err != nil {
		return "", err
	}
	spec.Placement = &v1alpha1.Placement{
		NodeSelector: map[string]string{storageKey: ""},
		Tolerations:  []corev1.Toleration{{Key: storageKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
	if err := b.Create(ctx, &v1alpha1.FileServer{ObjectMeta: metav1.ObjectMeta{Name: grown, Namespace: b.Namespace}, Spec: spec}); err != nil {
		return "", err
	}
	if err := b.Create(ctx, &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Name: grown, Namespace: b.Namespace},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef: v1alpha1.FileServerReference{Name: grown}, Path: "/" + grown,
			Directories: []string{fmt.Sprintf("{1..%d}", grownDirectories)},
		},
	}); err != nil {
		return "", err
	}
	if err := cluster.WaitFor(ctx, "share "+grown, b.noted(func(ctx context.Context) error { return b.ShareReady(ctx, grown) })); err != nil {
		return "", err
	}
	b.begin("a client with %d files of %d KiB", grownDirectories*grownFiles, b.fileKiB)
	if pod, err = b.client(ctx, map[string]string{grownMount: grown}); err != nil {
		return "", err
	}
	_, err = b.Shell(ctx, pod, fmt.Sprintf(`cd %s && for d in *; do for i in $(seq 0 %d); do
		dd if=/dev/urandom of=$d/$i bs=1k count=%d conv=fsync 2>/dev/null || exit 1; done; done
		md5sum */* >/tmp/sums && test $(wc -l </tmp/sums) = %d`, grownMount, grownFiles-1, b.fileKiB, grownDirectories*grownFiles))
	return pod, err
}

// storageOfGrowth is where the FileServer has its data, and whether that may be copied. In a Ceph nothing is copied.
func (b *bench) storageOfGrowth(ctx context.Context) (v1alpha1.FileServerSpec, error) {
	if !b.ceph {
		return v1alpha1.FileServerSpec{
			Storage: v1alpha1.FileServerStorage{Volumes: v1alpha1.VolumesStorage{Size: new(resource.MustParse("1Gi"))}},
			Moves:   v1alpha1.Moves{Copying: v1alpha1.MoveCopyingAllow},
		}, nil
	}
	account, err := b.CephAccount(ctx)
	if err != nil {
		return v1alpha1.FileServerSpec{}, err
	}
	return v1alpha1.FileServerSpec{Storage: cluster.CephStorage(account, grown)}, b.Create(ctx, cluster.CephCredential(account, b.Namespace, grown))
}

// rebalance is kubectl howdah rebalance: it spreads the directories over all data servers. Clients of directories on volumes always follow.
func (b *bench) rebalance(ctx context.Context) error {
	args := []string{"howdah", "-n", b.Namespace, "rebalance", grown}
	if b.ceph {
		args = append(args, "--follow")
	}
	b.begin("kubectl %s", strings.Join(args, " "))
	output, err := exec.CommandContext(ctx, "kubectl", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}

// noted shows what a condition waits for.
func (b *bench) noted(condition func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := condition(ctx)
		if err != nil {
			b.note("%v", err)
		}
		return err
	}
}

// addServers gives nodes the label that brings data servers there, and spreads the directories.
func (b *bench) addServers(ctx context.Context, pod string, first, added []string, found *growth) error {
	ctx, cancel := context.WithTimeout(ctx, growthLimit)
	defer cancel()
	all := slices.Concat(first, added)
	b.begin("data servers on %s", strings.Join(added, " and "))
	before, err := spare.Now()
	if err != nil {
		return err
	}
	if found.labelled, err = b.clock(ctx, pod); err != nil {
		return err
	}
	if _, err := b.Kubectl(ctx, append(append([]string{"label", "nodes"}, added...), storageKey+"=")...); err != nil {
		return err
	}
	if err := cluster.WaitFor(ctx, "the new data servers", b.noted(func(ctx context.Context) error { return b.serveOn(ctx, all) })); err != nil {
		return err
	}
	if found.serving, err = b.clock(ctx, pod); err != nil {
		return err
	}
	b.end("they serve after %.0f s", found.serving-found.labelled)
	if err := b.rebalance(ctx); err != nil {
		return err
	}
	if err := cluster.WaitFor(ctx, "the directories' moves", b.noted(func(ctx context.Context) error { return b.spread(ctx, len(all), found) })); err != nil {
		return err
	}
	if found.moved, err = b.clock(ctx, pod); err != nil {
		return err
	}
	after, err := spare.Now()
	if err != nil {
		return err
	}
	found.windows = append(found.windows, verdict.Window{Name: "while it grows", Use: after.Since(before)})
	b.end("%d moved after %.0f s", found.directories, found.moved-found.serving)
	return nil
}

// serveOn gives nil if each of the nodes has one data server that serves, and the share is served by all.
func (b *bench) serveOn(ctx context.Context, nodes []string) error {
	fs := &v1alpha1.FileServer{}
	if err := b.Get(ctx, grown, fs); err != nil {
		return err
	}
	var serving []string
	for _, server := range fs.Status.Servers {
		if server.State == v1alpha1.ServerServing {
			serving = append(serving, server.NodeName)
		}
	}
	slices.Sort(serving)
	if want := slices.Sorted(slices.Values(nodes)); !slices.Equal(serving, want) {
		return fmt.Errorf("data servers serve on %v, not on %v", serving, want)
	}
	if err := cluster.Expect(fs.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue); err != nil {
		return err
	}
	return b.ShareReady(ctx, grown)
}

// spread gives nil if each data server has as many directories, and none moves.
func (b *bench) spread(ctx context.Context, servers int, found *growth) error {
	list := &internalv1.ShareDirectoryList{}
	if err := b.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: grown}); err != nil {
		return err
	}
	counts, moving := map[string]int{}, 0
	for i := range list.Items {
		counts[list.Items[i].Spec.DataServerRef.Name]++
		if list.Items[i].Spec.Move.ID != "" {
			moving++
		}
	}
	found.directories = grownDirectories - counts[naming.DataServer(grown, 0)]
	left := found.directories - grownDirectories*(servers-1)/servers
	if left != 0 || moving != 0 {
		return fmt.Errorf("%d directories are at new data servers, %d are under way", found.directories, moving)
	}
	for server, count := range counts {
		if count != grownDirectories/servers {
			return errors.New(server + " has not its part of the directories")
		}
	}
	return nil
}
