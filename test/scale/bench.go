package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/test/cluster"
)

const (
	nodeLabel = "howdah.io/scale"
	// streamsPerServer keeps a server's link busy: with one reader it would idle between requests.
	streamsPerServer = 8
	fileMiB          = 16
	one, all         = "one", "all"
)

type bench struct {
	*cluster.Cluster
	*progress
	nodes      []string
	clientNode string
	seconds    int
	fileKiB    int  // of the files that the job of a growth reads
	ceph       bool // the data servers of a growth have their data in a Ceph
	// directories of each share, by the data server that owns them.
	owned map[string]map[string][]string
	pods  int
}

// prepare makes a FileServer of one data server and one of as many as there are
// capped nodes, a share on each, and files in every directory.
func (b *bench) prepare(ctx context.Context) error {
	for _, name := range b.nodes {
		node := &corev1.Node{}
		if err := b.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		labelled := node.DeepCopy()
		labelled.Labels[nodeLabel] = "server"
		if err := b.Patch(ctx, labelled, client.MergeFrom(node)); err != nil {
			return err
		}
	}
	b.begin("%d data servers on capped nodes", len(b.nodes)+1)
	for name, servers := range map[string]int{one: 1, all: len(b.nodes)} {
		if err := b.createShare(ctx, name, int32(servers)); err != nil {
			return err
		}
	}
	b.owned = map[string]map[string][]string{}
	for name, servers := range map[string]int{one: 1, all: len(b.nodes)} {
		if err := cluster.WaitFor(ctx, "share "+name, func(ctx context.Context) error {
			err := b.ShareReady(ctx, name)
			if err != nil {
				b.note("%v", err)
			}
			return err
		}); err != nil {
			return err
		}
		owned, err := b.ownedBy(ctx, name)
		if err != nil {
			return err
		}
		if len(owned) != servers {
			return fmt.Errorf("share %s: its directories are on %d servers, not %d", name, len(owned), servers)
		}
		b.owned[name] = owned
	}
	directories := streamsPerServer * (len(b.nodes) + 1)
	b.begin("%d files of %d MiB", directories, fileMiB)
	pod, err := b.client(ctx, map[string]string{"/one": one, "/all": all})
	if err != nil {
		return err
	}
	defer b.drop(ctx, pod)
	_, err = b.Shell(ctx, pod, fmt.Sprintf(`for d in /one/* /all/*; do
		dd if=/dev/urandom of=$d/file bs=1M count=%d conv=fsync 2>/dev/null || exit 1; done`, fileMiB))
	return err
}

func (b *bench) createShare(ctx context.Context, name string, servers int32) error {
	if err := b.Create(ctx, &v1alpha1.FileServer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace},
		Spec: v1alpha1.FileServerSpec{
			Replicas:  servers,
			Storage:   v1alpha1.FileServerStorage{Volumes: v1alpha1.VolumesStorage{Size: new(resource.MustParse("1Gi"))}},
			Placement: &v1alpha1.Placement{NodeSelector: map[string]string{nodeLabel: "server"}},
		},
	}); err != nil {
		return err
	}
	return b.Create(ctx, &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.Namespace},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef: v1alpha1.FileServerReference{Name: name},
			Path:          "/" + name,
			Directories:   []string{fmt.Sprintf("{1..%d}", streamsPerServer*servers)},
		},
	})
}

func (b *bench) ownedBy(ctx context.Context, share string) (map[string][]string, error) {
	list := &internalv1.ShareDirectoryList{}
	if err := b.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: share}); err != nil {
		return nil, err
	}
	owned := map[string][]string{}
	for _, directory := range list.Items {
		if server := directory.Spec.DataServerRef.Name; server != "" {
			owned[server] = append(owned[server], directory.Spec.Path)
		}
	}
	return owned, nil
}

// client runs a client pod and waits for it. Mounts of one server share their
// connections for as long as one of them lives, so every measurement has a pod of its own.
func (b *bench) client(ctx context.Context, claims map[string]string) (string, error) {
	b.pods++
	name := fmt.Sprintf("client-%d", b.pods)
	err := b.RunClient(ctx, cluster.ClientPod{Name: name, Claims: claims, NodeSelector: map[string]string{corev1.LabelHostname: b.clientNode}})
	if err != nil {
		return "", err
	}
	return name, b.WaitPodReady(ctx, name)
}

func (b *bench) drop(ctx context.Context, pod string) {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: b.Namespace}}
	if err := b.Delete(ctx, object); err != nil {
		fmt.Fprintln(os.Stderr, "scale: pod", pod, "stays:", err)
		return
	}
	if err := b.WaitGone(ctx, object); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
	}
}

// remove takes away what prepare made.
func (b *bench) remove(ctx context.Context) {
	claims := []string{"narrow"}
	for server := range b.owned[all] {
		claims = append(claims, directClaim(server))
	}
	for _, claim := range claims {
		if err := b.DeleteNFSClaim(ctx, claim); client.IgnoreNotFound(err) != nil {
			fmt.Fprintln(os.Stderr, "scale:", err)
		}
	}
	b.clear(ctx, []string{"label", "nodes", "--all", nodeLabel + "-"})
}

// removeGrowth takes away what grow made.
func (b *bench) removeGrowth(ctx context.Context) {
	// A node without the taint is an error; the label may be there or not.
	for _, node := range b.nodes {
		if _, err := b.Kubectl(ctx, "taint", "nodes", node, storageKey+"-"); err != nil && !strings.Contains(err.Error(), "not found") {
			fmt.Fprintln(os.Stderr, "scale:", err)
		}
	}
	b.clear(ctx, []string{"label", "nodes", "--all", storageKey + "-"})
}

// clear takes away the run's namespace with all that is in it, and does what a run wants besides.
func (b *bench) clear(ctx context.Context, besides ...[]string) {
	for _, args := range append([][]string{
		{"delete", "pods", "--selector", cluster.ClientLabel, "--grace-period=1"},
		{"delete", "fileshares", "--all", "--timeout=60s"},
		{"delete", "fileservers", "--all", "--timeout=60s"},
		{"delete", "namespace", b.Namespace, "--wait=false"},
	}, besides...) {
		if _, err := b.Kubectl(ctx, args...); err != nil {
			fmt.Fprintln(os.Stderr, "scale:", err)
		}
	}
}

func directClaim(server string) string { return "direct-" + server }

// directClaims makes claims that mount the data servers' exports without the namespace.
func (b *bench) directClaims(ctx context.Context, share string, options []string) (map[string]string, error) {
	claims := map[string]string{}
	for server := range b.owned[share] {
		dataServer := &internalv1.DataServer{}
		if err := b.Get(ctx, server, dataServer); err != nil {
			return nil, err
		}
		if err := b.NFSClaim(ctx, directClaim(server), dataServer.Spec.Address, naming.ExportPseudo(share, 0), options...); err != nil {
			return nil, err
		}
		claims["/direct/"+server] = directClaim(server)
	}
	return claims, nil
}

// files gives the paths of a share's files, below one mount point or below one for each server.
func (b *bench) files(share, mount string, perServer bool) []string {
	var paths []string
	for server, directories := range b.owned[share] {
		for _, directory := range directories {
			base := mount
			if perServer {
				base += "/" + server
			}
			paths = append(paths, strings.Join([]string{base, directory, "file"}, "/"))
		}
	}
	return paths
}
