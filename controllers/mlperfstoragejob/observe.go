package mlperfstoragejob

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/conditions"
	"github.com/howdah/howdah/controllers/desired"
	"github.com/howdah/howdah/controllers/index"
	"github.com/howdah/howdah/controllers/servertime"
	"github.com/howdah/howdah/internal/benchmark"
	"github.com/howdah/howdah/internal/naming"
)

// observed has everything that a pass reads. Objects that do not exist are nil or empty.
type observed struct {
	job *v1alpha1.MLPerfStorageJob
	now time.Time
	// certain is the earlier of the API server's and the operator's time. A job is deleted for its age by this time.
	certain time.Time
	share   *v1alpha1.FileShare
	// servers are the data servers of the share's FileServer, sorted by name.
	servers []benchmark.Server
	// directories are the paths of the share's directories that exist on a data server.
	directories []string
	hasPlan     bool
	// volume is the PersistentVolume that client pods mount.
	volume *corev1.PersistentVolume
	// claim is the volume's claim.
	claim *corev1.PersistentVolumeClaim
	// journal is what the client pods wrote.
	journal       map[string]string
	generate, run *batchv1.Job
	// pods are the client pods of both Jobs, sorted by name.
	pods []corev1.Pod
	// refusal is why the API server refuses client pods of the Job that is running; "" if it does not.
	refusal string
}

func (r *Reconciler) observe(ctx context.Context, job *v1alpha1.MLPerfStorageJob) (*observed, error) {
	at := servertime.Read(r.Clock)
	o := &observed{job: job, now: at.Server, certain: at.Earliest()}
	steps := []struct {
		what string
		read func() error
	}{
		{"the FileShare", func() (err error) {
			o.share, err = read(ctx, r, &v1alpha1.FileShare{}, job, job.Spec.FileShareRef.Name)
			return
		}},
		{"the plan", func() error {
			plan, err := read(ctx, r, &corev1.ConfigMap{}, job, naming.BenchmarkPlan(job.Name))
			o.hasPlan = plan != nil
			return err
		}},
		{"the volume", func() (err error) {
			o.volume, err = readOf(ctx, r, &corev1.PersistentVolume{}, "", naming.BenchmarkVolume(job.Namespace, job.Name))
			return
		}},
		{"the claim", func() (err error) {
			o.claim, err = read(ctx, r, &corev1.PersistentVolumeClaim{}, job, naming.Benchmark(job.Name))
			return
		}},
		{"the result", func() error {
			result, err := read(ctx, r, &corev1.ConfigMap{}, job, naming.BenchmarkResult(job.Name))
			if result != nil {
				o.journal = result.Data
			}
			return err
		}},
		{"the Job that generates", func() (err error) {
			o.generate, err = read(ctx, r, &batchv1.Job{}, job, naming.BenchmarkGenerate(job.Name))
			return
		}},
		{"the Job that runs", func() (err error) {
			o.run, err = read(ctx, r, &batchv1.Job{}, job, naming.BenchmarkRun(job.Name))
			return
		}},
		{"Pods", func() error { return o.readPods(ctx, r) }},
		{"Events", func() error { return o.readRefusal(ctx, r.Live) }},
		{"DataServers", func() error { return o.readServers(ctx, r) }},
		{"ShareDirectories", func() error { return o.readDirectories(ctx, r) }},
	}
	for _, step := range steps {
		if err := step.read(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", step.what, err)
		}
	}
	return o, nil
}

// read gets an object of the job's namespace, nil if there is none.
func read[T client.Object](ctx context.Context, c client.Reader, into T, job *v1alpha1.MLPerfStorageJob, name string) (T, error) {
	return readOf(ctx, c, into, job.Namespace, name)
}

func readOf[T client.Object](ctx context.Context, c client.Reader, into T, namespace, name string) (T, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if err != nil {
		var none T
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return none, err
	}
	return into, nil
}

func (o *observed) readPods(ctx context.Context, c client.Reader) error {
	var list corev1.PodList
	err := c.List(ctx, &list, client.InNamespace(o.job.Namespace), index.OfJob(o.job.Name), client.MatchingLabels(naming.SelectBenchmark(o.job.Name)))
	o.pods = list.Items
	slices.SortFunc(o.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// mayLook reports whether the share's data servers may be read: the share exists and, if its FileServer is in another
// namespace, is served.
func (o *observed) mayLook() bool {
	return o.share != nil && (!naming.IsForeign(o.share) || o.share.Status.Mount.Address != "")
}

// readServers needs the share, for its FileServer and its Export_Ids.
func (o *observed) readServers(ctx context.Context, c client.Reader) error {
	if !o.mayLook() {
		return nil
	}
	var list internalv1.DataServerList
	err := c.List(ctx, &list, client.InNamespace(naming.ServerNamespace(o.share)), index.OfFileServer(o.share.Spec.FileServerRef.Name))
	if err != nil {
		return err
	}
	var exports internalv1.ShareExportList
	err = c.List(ctx, &exports, client.InNamespace(naming.ServerNamespace(o.share)), index.OfFileShare(naming.KeyOf(o.share)), client.UnsafeDisableDeepCopy)
	ids := map[string][]int32{}
	for i := range exports.Items {
		ids[exports.Items[i].Spec.DataServerRef.Name] = exports.Items[i].Status.ExportIDs
	}
	for i := range list.Items {
		o.servers = append(o.servers, serverOf(&list.Items[i], ids[list.Items[i].Name]))
	}
	slices.SortFunc(o.servers, func(a, b benchmark.Server) int { return strings.Compare(a.Name, b.Name) })
	return err
}

// serverOf puts the pod's address first: the address for clients may admit only NFS.
func serverOf(dataServer *internalv1.DataServer, exportIDs []int32) benchmark.Server {
	server := benchmark.Server{Name: dataServer.Name, Exports: exportIDs}
	own := dataServer.Status.PodIP
	if first := dataServer.Status.FirstPort; own != "" && first != 0 {
		own = net.JoinHostPort(own, strconv.Itoa(int(naming.DataServerPorts(first).Metrics)))
	}
	for _, address := range []string{own, dataServer.Spec.Address} {
		if address != "" {
			server.Addresses = append(server.Addresses, address)
		}
	}
	return server
}

func (o *observed) readDirectories(ctx context.Context, c client.Reader) error {
	if !o.mayLook() || o.hasPlan {
		return nil // a plan does not change
	}
	var list internalv1.ShareDirectoryList
	err := c.List(ctx, &list, client.InNamespace(naming.ServerNamespace(o.share)), index.OfFileShare(naming.KeyOf(o.share)), client.UnsafeDisableDeepCopy)
	for i := range list.Items {
		if d := &list.Items[i]; d.Spec.DataServerRef.Name != "" && d.State() == internalv1.DirectoryReady {
			o.directories = append(o.directories, d.Spec.Path)
		}
	}
	slices.Sort(o.directories)
	return err
}

// runID is the ID of the run, as its pods know it; "" if there is none.
func (o *observed) runID() string {
	if o.run == nil {
		return ""
	}
	return string(o.run.UID)
}

// deadline is when the job exceeds activeDeadlineSeconds; false if there is no limit.
func (o *observed) deadline() (time.Time, bool) {
	start, seconds := o.job.Status.StartTime, o.job.Spec.ActiveDeadlineSeconds
	if start == nil || seconds == 0 || o.job.Spec.Execution == v1alpha1.ExecutionSuspended {
		return time.Time{}, false
	}
	return start.Add(time.Duration(seconds) * time.Second), true
}

// expiry is when a finished job is deleted; false if it is kept.
func (o *observed) expiry() (time.Time, bool) {
	end, seconds := o.job.Status.CompletionTime, o.job.Spec.TTLSecondsAfterFinished
	if end == nil || seconds == nil {
		return time.Time{}, false
	}
	return end.Add(time.Duration(*seconds) * time.Second), true
}

// facts is the input of benchmark.StateOf.
func (o *observed) facts() benchmark.Facts {
	deadline, limited := o.deadline()
	f := benchmark.Facts{
		Suspended:        o.job.Spec.Execution == v1alpha1.ExecutionSuspended,
		DeadlineExceeded: limited && !o.now.Before(deadline),
		Ended:            o.job.Status.CompletionTime != nil,
		ShareFound:       o.share != nil,
		Prepared:         o.hasPlan,
		Generate:         phaseOf(o.generate),
		Run:              phaseOf(o.run),
	}
	if o.run != nil {
		f.Failure = o.journal[benchmark.KeyFailure(o.runID())]
	}
	if o.share != nil {
		f.ShareReady = conditions.IsTrue(o.share.Status.Conditions, v1alpha1.ConditionReady) && o.share.Status.Mount.Address != ""
	}
	if text, ok := o.journal[benchmark.KeyResult]; ok {
		result := &v1alpha1.BenchmarkResult{}
		if err := json.Unmarshal([]byte(text), result); err != nil {
			f.Failure = "the result can't be read: " + err.Error()
		} else {
			f.Result = result
		}
	}
	if late, ok := o.resultDue(); ok && f.Result == nil && f.Failure == "" && !o.now.Before(late) {
		f.Failure = fmt.Sprintf("all client pods have ended well, and ConfigMap %s has no result of theirs: it was deleted or changed meanwhile; delete this job and make it again",
			naming.BenchmarkResult(o.job.Name))
	}
	return f
}

// resultWait is how long the result of a run may take to be seen after its pods have ended. They write it before.
const resultWait = 5 * time.Minute

// resultDue is when the result of a run must have been seen; false if it has not ended.
func (o *observed) resultDue() (time.Time, bool) {
	if o.run == nil || o.run.Status.CompletionTime == nil || !phaseOf(o.run).Complete {
		return time.Time{}, false
	}
	return o.run.Status.CompletionTime.Add(resultWait), true
}

func (o *observed) state() benchmark.State { return benchmark.StateOf(o.facts()) }

func phaseOf(job *batchv1.Job) benchmark.PhaseFacts {
	if job == nil {
		return benchmark.PhaseFacts{}
	}
	f := benchmark.PhaseFacts{Exists: true}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			f.Complete = true
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			f.Failed = true
		}
	}
	return f
}

// jobInput is what the Jobs are made from.
func (o *observed) jobInput(images desired.Images) desired.BenchmarkJobInput {
	return desired.BenchmarkJobInput{Job: o.job, Share: o.share, Image: images.Howdah, PullSecrets: images.PullSecrets, Clients: o.job.Spec.Clients}
}
