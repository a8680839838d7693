package dataservertest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"

	diff "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/mtls"
	"github.com/howdah/howdah/internal/naming"
)

// Statuses stands in for the API: it keeps the statuses and counts their changes. That the API itself
// takes them is shown in TestTheDataServerInTheAPI.
type Statuses struct {
	Mutex   sync.Mutex
	Status  internalv1.DataServerStatus
	Exports map[string]*internalv1.ShareExport // By share.
	writes  int
	// history has what each write changed, for a test that wants none.
	history []string
	// SharesUnknown: the storage can't tell which shares it has.
	SharesUnknown bool
	// Downs counts how often an export that served ceased to.
	Downs int
}

// Report keeps the status of the DataServer, as the API server does.
func (r *Statuses) Report(_ context.Context, build func(internalv1.DataServerStatus) internalv1.DataServerStatus) error {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	if next := build(*r.Status.DeepCopy()); !equality.Semantic.DeepEqual(r.Status, next) {
		r.history = append(r.history, diff.Diff(r.Status, next))
		r.Status = next
		r.writes++
	}
	return nil
}

// ReportExports keeps the statuses of the exports. An export must not serve before the DataServer reports its share.
func (r *Statuses) ReportExports(_ context.Context, build func(*internalv1.ShareExport) internalv1.ShareExportStatus) error {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	for share, export := range r.Exports {
		next := build(export)
		if equality.Semantic.DeepEqual(export.Status, next) {
			continue
		}
		if Serves(export) && !meta.IsStatusConditionTrue(next.Conditions, internalv1.ExportServing) && export.DeletionTimestamp == nil {
			r.Downs++
		}
		r.history = append(r.history, diff.Diff(export.Status, next))
		if now := meta.IsStatusConditionTrue(next.Conditions, internalv1.ExportServing); now && !r.SharesUnknown && (r.Status.Shares == nil ||
			!naming.DigestMayHave(*r.Status.Shares, naming.ShareDirectoryName(share))) {
			return fmt.Errorf("share %s serves before the DataServer says that its volumes have it", share)
		}
		r.Exports[share] = export.DeepCopy()
		r.Exports[share].Status = next
		r.writes++
	}
	return nil
}

// Serves is true if the status of an export reports that it is served.
func Serves(export *internalv1.ShareExport) bool {
	return meta.IsStatusConditionTrue(export.Status.Conditions, internalv1.ExportServing)
}

// Wanted is what a test asks of a data server.
type Wanted struct {
	internalv1.DataServerSpec
	// Exports are the shares to serve. One that leaves is deleted, its data stays.
	Exports []internalv1.ShareExportSpec
	// Removals are shares to delete with their data.
	Removals []string
}

// Reported is what the supervisor has reported.
type Reported struct {
	internalv1.DataServerStatus
	Exports []servedExport
	Removed []string
}

type servedExport struct {
	ShareName string
	ExportIDs []int32
}

// Take makes the exports what is wanted, as the operator does.
func (r *Statuses) Take(want *Wanted) {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	before := r.Exports
	r.Exports = map[string]*internalv1.ShareExport{}
	for _, spec := range want.Exports {
		share := spec.FileShareRef.Name
		export := before[share]
		if export == nil || export.DeletionTimestamp != nil {
			export = NewExport(spec)
		}
		if !equality.Semantic.DeepEqual(export.Spec, spec) {
			export = export.DeepCopy()
			export.Spec = spec
			export.Generation++
		}
		r.Exports[share] = export
	}
	remove := func(export *internalv1.ShareExport, policy internalv1.DataPolicy) {
		gone := export.DeepCopy()
		now := metav1.Now()
		gone.DeletionTimestamp, gone.Spec.DataPolicy = &now, policy
		gone.Generation++
		r.Exports[export.Spec.FileShareRef.Name] = gone
	}
	for share, export := range before {
		if r.Exports[share] == nil && export.DeletionTimestamp == nil {
			remove(export, internalv1.DataRetain)
		}
	}
	for _, share := range want.Removals {
		export := before[share]
		if export == nil {
			export = NewExport(ShareSpec(share))
		}
		remove(export, internalv1.DataDelete)
	}
}

var newestUID atomic.Int64

// NewExport is an export of training-0 that is newer than those before it.
func NewExport(spec internalv1.ShareExportSpec) *internalv1.ShareExport {
	uid := newestUID.Add(1)
	return &internalv1.ShareExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.ShareExport(spec.FileShareRef.Name, "training-0"), Namespace: "default", Generation: 1,
			UID: types.UID(strconv.FormatInt(uid, 10)), CreationTimestamp: metav1.Unix(1_700_000_000+uid, 0),
		},
		Spec: spec,
	}
}

// List are the exports as the watch has them, the oldest first.
func (r *Statuses) List() []*internalv1.ShareExport {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	return slices.SortedFunc(maps.Values(r.Exports), func(a, b *internalv1.ShareExport) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
}

// Get is what was reported, and how many writes changed something.
func (r *Statuses) Get() (Reported, int) {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	all := Reported{DataServerStatus: *r.Status.DeepCopy()}
	for _, share := range slices.Sorted(maps.Keys(r.Exports)) {
		export := r.Exports[share]
		if Serves(export) {
			all.Exports = append(all.Exports, servedExport{share, export.Status.ExportIDs})
		}
		if meta.IsStatusConditionTrue(export.Status.Conditions, internalv1.ExportRemoved) {
			all.Removed = append(all.Removed, share)
		}
	}
	return all, r.writes
}

// ChangesSince is what writes have changed after the first of them.
func (r *Statuses) ChangesSince(write int) string {
	r.Mutex.Lock()
	defer r.Mutex.Unlock()
	return strings.Join(r.history[write:], "\n")
}

// IsUpToDate reports whether every export is as its newest generation asks for.
func (r *Statuses) IsUpToDate() bool {
	for _, export := range r.List() {
		done := internalv1.ExportServing
		if export.DeletionTimestamp != nil {
			done = internalv1.ExportRemoved
		}
		if export.Status.ObservedGeneration == nil || *export.Status.ObservedGeneration != export.Generation ||
			!meta.IsStatusConditionTrue(export.Status.Conditions, done) {
			return false
		}
	}
	return true
}

// DataServer is the object training-0 with that many volumes.
func DataServer(volumes int32) *internalv1.DataServer {
	return &internalv1.DataServer{
		ObjectMeta: metav1.ObjectMeta{Name: "training-0", Namespace: "default", Generation: 1},
		Spec: internalv1.DataServerSpec{
			FileServerRef: internalv1.FileServerReference{Name: "training"}, ServerScope: "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c",
			LeaseSeconds: 10, GraceSeconds: 20, Volumes: volumes,
			// The volumes of most tests are folders.
			SharedFileSystemPolicy: v1alpha1.SharedFileSystemAllow,
		},
	}
}

// ShareSpec is an export of training-0.
func ShareSpec(name string, rules ...v1alpha1.AccessRule) internalv1.ShareExportSpec {
	owner, group := int64(1000), int64(1000)
	if len(rules) == 0 {
		rules = []v1alpha1.AccessRule{{Clients: []string{"10.99.0.0/16"}}}
	}
	return internalv1.ShareExportSpec{
		FileServerRef: internalv1.FileServerReference{Name: "training"}, DataServerRef: internalv1.DataServerReference{Name: "training-0"},
		FileShareRef: internalv1.FileShareReference{Name: name}, UID: &owner, GID: &group, Mode: "0755", Access: rules, DataPolicy: internalv1.DataRetain,
	}
}

// EmptyVolume is a directory with one fresh volume.
func EmptyVolume(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	mustNotFail(t, "make a volume", os.Mkdir(filepath.Join(root, "0"), 0o755))
	return root
}

// TestAuthority is that of the FileServer of sampleServer.
var TestAuthority = sync.OnceValues(func() (*mtls.Authority, error) { return mtls.NewAuthority(DataServer(1).Spec.ServerScope) })

// ForeignAuthority is that of another FileServer.
var ForeignAuthority = sync.OnceValues(func() (*mtls.Authority, error) { return mtls.NewAuthority("another") })

// Issue makes a certificate bundle of an authority.
func Issue(t *testing.T, from func() (*mtls.Authority, error), what func(*mtls.Authority) ([]byte, error)) []byte {
	t.Helper()
	authority, err := from()
	mustNotFail(t, "an authority", err)
	bundle, err := what(authority)
	mustNotFail(t, "a certificate", err)
	return bundle
}

// Lines collects a log.
type Lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *Lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *Lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// TLSConfig is that of a namespace server with the certificate bundle, for the data server of DataServer.
func TLSConfig(t *testing.T, bundle []byte) *tls.Config {
	t.Helper()
	identity, err := mtls.Parse(bundle)
	mustNotFail(t, "read a certificate", err)
	return mtls.ClientConfig([]*mtls.Identity{identity}, naming.DataServerTLSName(DataServer(1).Spec.ServerScope, "training-0"), time.Now)
}

// MetricOf is the value of the first metric of that name; of a histogram, the number of samples.
func MetricOf(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	mustNotFail(t, "gather metrics", err)
	for _, family := range families {
		if family.GetName() == name {
			metric := family.GetMetric()[0]
			return metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

func mustNotFail(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
