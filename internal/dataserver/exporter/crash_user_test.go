package exporter

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/dataserver/volumes"
	nstree "github.com/howdah/howdah/internal/namespace/tree"
	"github.com/howdah/howdah/internal/naming"
	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
	"github.com/howdah/howdah/test/builders"
)

// life is a share of the name from its creation to its deletion.
type life struct {
	uid    string
	policy v1alpha1.ReclaimPolicy
	// ended: it was deleted, and the operator had looked at it by then, so that its policy counts.
	ended bool
	// unsure: it was deleted between its finalizer and its first status. A pass may have let it in meanwhile, and then its policy counts;
	// otherwise what there is of its name is an earlier share's, and stays.
	unsure bool
}

// written is a file that a client wrote, with a successful answer. Its name contains the life and is unique.
type written struct {
	name string
	life int
	// What the client has in its file handle: the data server, the Export_Id and the directory.
	server   string
	exportID uint16
	root     *os.Root
}

// users are who makes and deletes the share, and clients who work in it.
type users struct {
	*model
	single   bool
	declared bool
	lives    []*life
	files    []*written
	// made are directories whose creation was answered with success, with the life.
	made map[string]int
}

func (u *users) share() *v1alpha1.FileShare {
	b := builders.FileShare("ns", "s", "fs").Depth(2).Owner(0, 0, "0777").Access("", "", "0.0.0.0/0")
	if u.single {
		b.Single()
	} else if u.declared {
		b.Directories("d/{0..1}")
	}
	return b.Build()
}

// create makes the share, as soon as an earlier one is gone.
func (u *users) create(policy v1alpha1.ReclaimPolicy, timeout time.Duration) bool {
	share := u.share()
	share.Spec.ReclaimPolicy = policy
	for deadline := time.Now().Add(timeout); ; time.Sleep(u.between(time.Millisecond, 300*time.Millisecond)) {
		err := u.api.create(share)
		if err == nil {
			break
		}
		if !apierrors.IsAlreadyExists(err) || time.Now().After(deadline) {
			return false
		}
	}
	u.note("user: made share %d with %s", len(u.lives), policy)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lives = append(u.lives, &life{uid: string(share.UID), policy: policy})
	return true
}

func (u *users) delete() {
	share := &v1alpha1.FileShare{}
	if err := u.api.Get("s", share); err != nil {
		u.fault("there is no share to delete: %v", err)
		return
	}
	last := u.lives[len(u.lives)-1]
	known, begun := len(share.Finalizers) > 0, meta.FindStatusCondition(share.Status.Conditions, v1alpha1.FileSharePlaced) != nil
	last.ended, last.unsure = known && begun, known && !begun
	u.note("user: deletes share %d (%s, counts: %v)", len(u.lives)-1, last.policy, last.ended)
	_ = u.api.remove(share, metav1.Preconditions{})
}

// AwaitUsable waits until the share can be used.
func (u *users) AwaitUsable(timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		share := &v1alpha1.FileShare{}
		if u.api.Get("s", share) == nil && meta.IsStatusConditionTrue(share.Status.Conditions, v1alpha1.FileShareExported) &&
			meta.IsStatusConditionTrue(share.Status.Conditions, v1alpha1.FileShareInventoried) &&
			meta.IsStatusConditionTrue(share.Status.Conditions, v1alpha1.FileShareJunctionsResolved) {
			return true
		}
	}
	return false
}

// lifeOf is the number of a share's life.
func (u *users) lifeOf(uid string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.IndexFunc(u.lives, func(l *life) bool { return l.uid == uid })
}

// isDoomed: what was written in a life must be gone for a later one.
func (u *users) isDoomed(from, to int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.lives[from:to], func(l *life) bool { return l.ended && l.policy == v1alpha1.ReclaimDelete })
}

// isUnsure: what was written in a life may be gone for a later one, and may be there.
func (u *users) isUnsure(from, to int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.lives[from:to], func(l *life) bool { return l.unsure && l.policy == v1alpha1.ReclaimDelete })
}

// mkdir does what Linux does: it goes on while the answer is NFS4ERR_DELAY, and gives up some time.
func (u *users) mkdir(life int, name string, timeout time.Duration) bool {
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		p, server := u.anyServer()
		if server == nil {
			continue
		}
		status := mkdirAt(server, name)
		if p.isDead() {
			continue
		}
		if status == nfsv4.NFS4_OK || status == nfsv4.NFS4ERR_EXIST {
			u.note("client: mkdir %s: %s", name, nfsv4.Nfsstat4_name[status])
			// Which share it was made in is what its name says, unless that was made again meanwhile.
			if status == nfsv4.NFS4_OK && u.lifeNow() == life && nstree.Depth(name) == 2 {
				u.mu.Lock()
				u.made[name] = life
				u.mu.Unlock()
			}
			return true
		}
	}
	return false
}

func (u *users) lifeNow() int {
	share := &v1alpha1.FileShare{}
	if u.api.Get("s", share) != nil {
		return -1
	}
	return u.lifeOf(string(share.UID))
}

func (u *users) anyServer() (*modelProcess, *namespaceServer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, at := range u.random.Perm(2) {
		if p := u.alive["ns-"+strconv.Itoa(at)]; p != nil {
			return p, p.inner.(*namespaceServer)
		}
	}
	return nil, nil
}

func mkdirAt(server *namespaceServer, name string) nfsv4.Nfsstat4 {
	ops := []nfsv4.NfsArgop4{&nfsv4.NfsArgop4_OP_PUTROOTFH{}}
	for _, element := range strings.Split(path.Join("s", path.Dir(name)), "/") {
		ops = append(ops, &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: element}})
	}
	ops = append(ops, &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: path.Base(name)}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := server.handler.Begin(ctx, rpc.Caller{Addr: netip.MustParseAddr("10.0.0.1")}, 1)
	for _, op := range ops {
		if status := session.StatusOf(c.Do(ctx, op)); status != nfsv4.NFS4_OK {
			return status
		}
	}
	return nfsv4.NFS4_OK
}

// shown are the directories with an owner that a namespace server shows of the share, and which life it takes it for.
func (u *users) shown(server *namespaceServer) (int, []*nstree.Directory) {
	share, ok := server.tree.Share("s")
	if !ok {
		return -1, nil
	}
	var out []*nstree.Directory
	for _, o := range u.api.all("ShareDirectory") {
		d := o.(*internalv1.ShareDirectory)
		if d.Spec.FileShareRef.Name != "s" {
			continue
		}
		if r, ok := server.tree.Directory("s", d.Spec.Path); ok && r.Server != "" && r.State == internalv1.DirectoryReady {
			out = append(out, r)
		}
	}
	return u.lifeOf(share.UID), out
}

// at calls with the export that serves a directory; false: none does.
func (u *users) at(d *nstree.Directory, call func(export *modelExport, rel string)) bool {
	u.mu.Lock()
	p := u.alive[d.Server]
	u.mu.Unlock()
	if p == nil || p.isDead() {
		return false
	}
	pseudo := naming.ExportPseudo("s", d.Volume)
	return p.ganesha.in(nstree.ExportPath("s", d.Volume, d.Path), func(_ *os.Root, rel string) error {
		call(p.ganesha.exports[pseudo], rel)
		return nil
	}) == nil
}

// write has a client write a file into every directory that it sees.
func (u *users) write() {
	_, server := u.anyServer()
	if server == nil {
		return
	}
	life, directories := u.shown(server)
	if life < 0 || life != u.lifeNow() {
		return
	}
	for _, d := range directories {
		u.at(d, func(export *modelExport, rel string) {
			u.mu.Lock()
			name := fmt.Sprintf("file-%d-%d", life, len(u.files))
			u.mu.Unlock()
			root, err := export.root.OpenRoot(rel)
			if err != nil || root.WriteFile(name, nil, 0o644) != nil {
				return
			}
			u.note("client: wrote %s into %s on %s", name, d.Path, d.Server)
			u.mu.Lock()
			defer u.mu.Unlock()
			u.files = append(u.files, &written{name, life, d.Server, export.ID, root})
		})
	}
}

// Look has clients look at everything, through the namespace and with file handles that they have.
func (u *users) Look() {
	for _, name := range []string{"ns-0", "ns-1"} {
		u.mu.Lock()
		p := u.alive[name]
		u.mu.Unlock()
		if p == nil || p.isDead() {
			continue
		}
		life, directories := u.shown(p.inner.(*namespaceServer))
		for _, d := range directories {
			u.at(d, func(export *modelExport, rel string) {
				for _, file := range filesIn(export.root, rel) {
					if of := lifeOfFile(file); of < life && u.isDoomed(of, life) {
						u.fault("%s shows share %d, and in it %s of share %d, which was deleted with its data", name, life, file, of)
					}
				}
			})
		}
	}
	now := u.lifeNow()
	for i := range int32(modelServers) {
		u.mu.Lock()
		p, files := u.alive[naming.DataServer("fs", i)], u.files
		u.mu.Unlock()
		if p == nil || p.isDead() || now < 0 {
			continue
		}
		p.ganesha.mu.Lock()
		served := map[uint16]bool{}
		for _, export := range p.ganesha.exports {
			served[export.ID] = true
		}
		p.ganesha.mu.Unlock()
		for _, file := range files {
			if file.server != p.name || !served[file.exportID] || file.life >= now || !u.isDoomed(file.life, now) || u.isBeingRemoved() {
				continue
			}
			if _, err := file.root.Stat(file.name); err == nil {
				u.fault("with a file handle of share %d a client still reads %s, which was deleted, through the export of share %d", file.life, file.name, now)
			}
		}
	}
}

// isBeingRemoved: an export of an earlier life is not done yet on some data server, which may be away.
func (u *users) isBeingRemoved() bool {
	return slices.ContainsFunc(u.api.all("ShareExport"), func(o client.Object) bool {
		return o.GetDeletionTimestamp() != nil && o.(*internalv1.ShareExport).Spec.FileShareRef.Name == "s"
	})
}

func lifeOfFile(name string) int {
	var life, n int
	if _, err := fmt.Sscanf(name, "file-%d-%d", &life, &n); err != nil {
		return -1
	}
	return life
}

func filesIn(root *os.Root, rel string) []string {
	var out []string
	_ = fs.WalkDir(root.FS(), rel, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out = append(out, path.Base(name))
		}
		return nil
	})
	return out
}

// judge tells what is wrong when everything is at rest.
func (u *users) judge() {
	now := u.lifeNow()
	last := len(u.lives)
	if now >= 0 {
		last = now
		u.judgeShare(now)
	} else {
		for _, kind := range []string{"ShareExport", "ShareDirectory"} {
			for _, o := range u.api.all(kind) {
				if strings.Contains(o.GetName(), "other") || o.GetLabels()[v1alpha1.RetainedLabel] != "" && !u.isDoomed(last-1, last) {
					continue
				}
				u.fault("the share is gone, and %s is left: %+v", keyOf(o), o)
			}
		}
	}
	onVolumes := map[string]string{}
	for i := range int32(modelServers) {
		for volume := range modelVolumes {
			base := filepath.Join(u.volumes(naming.DataServer("fs", i)), strconv.Itoa(volume))
			_ = filepath.WalkDir(base, func(name string, entry fs.DirEntry, _ error) error {
				if strings.HasPrefix(path.Base(name), "file-") {
					onVolumes[path.Base(name)] = strings.TrimPrefix(name, u.root)
				}
				return nil
			})
			if left, _ := os.ReadDir(filepath.Join(base, volumes.MetaDir, volumes.TrashDir)); len(left) > 0 {
				u.fault("the trash of %s is not empty: %s", base, left[0].Name())
			}
		}
	}
	seen := map[string]bool{}
	for _, o := range u.api.all("ShareDirectory") {
		if d := o.(*internalv1.ShareDirectory); now >= 0 && d.Spec.DataServerRef.Name != "" {
			u.at(nstree.NewDirectory(d), func(export *modelExport, rel string) {
				for _, file := range filesIn(export.root, rel) {
					seen[file] = true
				}
			})
		}
	}
	for _, file := range u.files {
		where, exists := onVolumes[file.name]
		switch doomed := u.isDoomed(file.life, last); {
		case doomed && exists:
			u.fault("%s should be gone and is at %s", file.name, where)
		case !doomed && !exists:
			if !u.isUnsure(file.life, last) {
				u.fault("%s is lost", file.name)
			}
		case !doomed && now >= 0 && !seen[file.name]:
			u.fault("%s can't be reached; it is at %s", file.name, where)
		}
	}
}

// judgeShare looks whether the share that is there is as it should be.
func (u *users) judgeShare(now int) {
	if !u.AwaitUsable(time.Second) {
		share := &v1alpha1.FileShare{}
		_ = u.api.Get("s", share)
		u.fault("share %d is not ready: %v", now, share.Status.Conditions)
	}
	exports := 0
	for _, o := range u.api.all("ShareExport") {
		export := o.(*internalv1.ShareExport)
		if export.Spec.FileShareRef.Name == "s" && export.DeletionTimestamp == nil && dataservertest.Serves(export) &&
			string(metav1.GetControllerOf(export).UID) == u.lives[now].uid {
			exports++
		}
	}
	if exports != modelServers {
		u.fault("%d data servers export the share", exports)
	}
	paths := map[string]bool{}
	for _, o := range u.api.all("ShareDirectory") {
		d := o.(*internalv1.ShareDirectory)
		if d.Spec.FileShareRef.Name != "s" {
			continue
		}
		paths[d.Spec.Path] = true
		if d.State() != internalv1.DirectoryReady || d.Labels[v1alpha1.RetainedLabel] != "" {
			u.fault("the ShareDirectory of %s is left %s, with labels %v", d.Spec.Path, d.State(), d.Labels)
		}
		if d.Spec.DataServerRef.Name == "" {
			continue
		}
		there := false
		u.at(nstree.NewDirectory(d), func(export *modelExport, rel string) {
			_, err := export.root.Stat(rel)
			there = err == nil
		})
		if !there {
			u.fault("the ShareDirectory of %s refers to nothing on %s, volume %d", d.Spec.Path, d.Spec.DataServerRef.Name, ptr.Deref(d.Spec.Volume, 0))
		}
		for _, name := range []string{"ns-0", "ns-1"} {
			if r, ok := u.alive[name].inner.(*namespaceServer).tree.Directory("s", d.Spec.Path); !ok || r.UID != string(d.UID) || r.State != d.State() {
				u.fault("%s does not show %s as it is", name, d.Spec.Path)
			}
		}
	}
	for name, of := range u.made {
		if !u.isDoomed(of, now) && !u.isUnsure(of, now) && !paths[name] {
			u.fault("directory %s, which a client made in share %d, is gone", name, of)
		}
	}
	for i := range int32(modelServers) {
		for volume := range modelVolumes {
			found, _ := filepath.Glob(filepath.Join(u.volumes(naming.DataServer("fs", i)), strconv.Itoa(volume), "s", "*", "*"))
			for _, name := range found {
				rel := strings.Join(strings.Split(name, "/")[len(strings.Split(name, "/"))-2:], "/")
				if !u.single && !paths[rel] {
					u.fault("%s on %s can't be reached", rel, naming.DataServer("fs", i))
				}
			}
		}
	}
}
