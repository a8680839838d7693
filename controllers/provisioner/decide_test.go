package provisioner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/test/builders"
)

const volumeName = "pvc-" + uid

// world is a claim of namespace team-a whose FileServer, in namespace storage, lets everybody in; share and volume are as they are once all is done.
func world(change func(*observed)) *observed {
	class := builders.StorageClass("c").Shares("storage", "fs").Build()
	claim := builders.Claim("team-a", "scratch", "c").UID(uid).Build()
	p, _ := parametersOf(class)
	fileServer := builders.FileServer("storage", "fs").Build()
	fileServer.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
	fileServer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.FileServerNamespaceServersAvailable, Status: metav1.ConditionTrue}}
	share := shareFor(claim, p, false)
	share.Spec.ReclaimPolicy = v1alpha1.ReclaimRetain
	share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	share.Status.Mount.Address = "10.0.0.1"
	o := &observed{claim: claim, class: class, share: share, fileServer: fileServer, volume: volumeFor(claim, class, p, share, false)}
	o.volume.Status.Phase = corev1.VolumeBound
	change(o)
	return o
}

// unbound is before there is a volume.
func unbound(change func(*observed)) *observed {
	return world(func(o *observed) {
		o.volume = nil
		change(o)
	})
}

// bound is with the claim as Kubernetes has it in the end.
func bound(change func(*observed)) *observed {
	return world(func(o *observed) {
		o.claim.Spec.VolumeName, o.claim.Status.Phase = volumeName, corev1.ClaimBound
		o.claim.Status.Capacity = o.volume.Spec.Capacity
		change(o)
	})
}

// released is without the claim.
func released(policy corev1.PersistentVolumeReclaimPolicy, change func(*observed)) *observed {
	return world(func(o *observed) {
		o.claim, o.volume.Status.Phase, o.volume.Spec.PersistentVolumeReclaimPolicy = nil, corev1.VolumeReleased, policy
		change(o)
	})
}

// does is what a decision does, in a word.
func does(d decision) string {
	var all []string
	for what, is := range map[string]bool{
		"share": d.createShare != nil, "volume": d.createVolume != nil, "grow" + unless20(d.grow): d.grow != nil, "quota" + unless20(d.quota): d.quota != nil, "policy " + string(d.policy): d.policy != "",
		"delete share": d.deleteShare, "drop volume": d.dropVolume, "refuse": d.refusal != "",
	} {
		if is {
			all = append(all, what)
		}
	}
	if len(all) == 0 {
		return "wait"
	}
	return strings.Join(all, " and ")
}

// unless20 is a size that is not the usual one.
func unless20(size *resource.Quantity) string {
	if size == nil || size.String() == "20Gi" {
		return ""
	}
	return " " + size.String()
}

func TestAClaimThatIsReadOnlyIsMountedSo(t *testing.T) {
	for name, tc := range map[string]struct {
		modes   []corev1.PersistentVolumeAccessMode
		options []string
		want    string
	}{
		"read only":                     {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, []string{"vers=4.1", "hard"}, "vers=4.1,hard,ro"},
		"read only, and the class says": {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, []string{"ro", "hard"}, "ro,hard"},
		"against the class":             {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, []string{"rw", "hard"}, "hard,ro"},
		"by many, also to write":        {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany}, []string{"hard"}, "hard"},
		"by one node, to write":         {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, []string{"hard"}, "hard"},
		"it does not say":               {nil, []string{"hard"}, "hard"},
	} {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: tc.modes}}
		p := parameters{mountOptions: tc.options}
		if got := strings.Join(mountOptionsFor(claim, builders.StorageClass("c").Build(), p, &v1alpha1.FileShare{}), ","); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestDecide(t *testing.T) {
	now := ptr.To(metav1.Now())
	const del, keep = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain
	noShare := func(o *observed) { o.share = nil }
	as := func(*observed) {}
	for what, tc := range map[string]struct {
		o    *observed
		want string
	}{
		"a new claim gets a share":                     {unbound(noShare), "share"},
		"one that another provisioner serves does not": {unbound(func(o *observed) { o.share, o.claim.Annotations = nil, nil }), "wait"},
		"with the older annotation it does": {unbound(func(o *observed) {
			o.share, o.claim.Annotations = nil, map[string]string{betaProvisionerAnnotation: v1alpha1.Provisioner}
		}), "share"},
		"nor one that names its volume":        {unbound(func(o *observed) { o.share, o.claim.Spec.VolumeName = nil, "mine" }), "wait"},
		"nor one that is being deleted":        {unbound(func(o *observed) { o.share, o.claim.DeletionTimestamp = nil, now }), "wait"},
		"nor one whose class is gone":          {unbound(func(o *observed) { o.share, o.class = nil, nil }), "wait"},
		"nor one whose class is another's now": {unbound(func(o *observed) { o.share, o.class.Provisioner = nil, "other" }), "wait"},
		"nor one that waits for a pod": {unbound(func(o *observed) {
			o.share, o.class.VolumeBindingMode = nil, ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
		}), "wait"},
		"with a pod it does": {unbound(func(o *observed) {
			o.share, o.class.VolumeBindingMode = nil, ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
			o.claim.Annotations[selectedNodeAnnotation] = "n"
		}), "share"},
		"no FileServer": {unbound(func(o *observed) { o.share, o.fileServer = nil, nil }), "refuse"},
		"a FileServer that allows its own namespace only": {unbound(func(o *observed) { o.share, o.fileServer.Spec.AllowedNamespaces = nil, nil }), "refuse"},
		"a FileServer's own namespace": {unbound(func(o *observed) {
			o.share, o.fileServer.Spec.AllowedNamespaces, o.claim.Namespace = nil, nil, "storage"
		}), "share"},
		"a FileServer that goes": {unbound(func(o *observed) { o.share, o.fileServer.DeletionTimestamp = nil, now }), "refuse"},
		"an enforced size":       {unbound(func(o *observed) { o.share, o.class.Parameters["size"] = nil, "Required" }), "refuse"},
		"a path without room": {unbound(func(o *observed) {
			o.share, o.class.Parameters["path"], o.claim.Namespace = nil, "/{namespace}-{claim}", long64[:63]
		}), "refuse"},
		"a share that is not ready":                   {unbound(func(o *observed) { o.share.Status.Conditions[0].Status = metav1.ConditionUnknown }), "wait"},
		"a share that is stalled":                     {unbound(func(o *observed) { o.share.Status.Conditions[0].Type = v1alpha1.ConditionStalled }), "refuse"},
		"a share of another claim":                    {unbound(func(o *observed) { o.share.Spec.ClaimRef.Name = "other" }), "refuse"},
		"a share that is being deleted":               {unbound(func(o *observed) { o.share.DeletionTimestamp = now }), "wait"},
		"a share without namespace servers":           {unbound(func(o *observed) { o.fileServer.Status.Conditions = nil }), "wait"},
		"a share that may get data now":               {unbound(func(o *observed) { o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete }), "policy Retain"},
		"a share that is ready":                       {unbound(as), "volume"},
		"a claim that went before":                    {unbound(func(o *observed) { o.claim, o.share.Spec.ReclaimPolicy = nil, v1alpha1.ReclaimDelete }), "delete share"},
		"a claim that goes, and a pod still names it": {unbound(func(o *observed) { o.claim.DeletionTimestamp = now }), "wait"},
		"a share with a claimRef by hand": {unbound(func(o *observed) {
			o.claim, o.share.Labels, o.share.Spec.ReclaimPolicy = nil, nil, v1alpha1.ReclaimDelete
		}), "wait"},
		"a share that had a volume":                   {unbound(func(o *observed) { o.claim = nil }), "wait"},
		"nothing is left":                             {unbound(func(o *observed) { o.claim, o.share = nil, nil }), "wait"},
		"bound":                                       {bound(as), "wait"},
		"not bound yet":                               {world(as), "wait"},
		"bound, and the share is gone":                {bound(noShare), "share"},
		"bound to another claim while it ended":       {bound(func(o *observed) { o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete }), "policy Retain"},
		"bound, and the share is gone, and the class": {bound(func(o *observed) { o.share, o.class = nil, nil }), "refuse"},
		"bound, and the share is gone, and the class means another FileServer":                   {bound(func(o *observed) { o.share, o.class.Parameters["fileServerNamespace"] = nil, "other" }), "refuse"},
		"bound, and the share is gone, and the class means another FileServer of that namespace": {bound(func(o *observed) { o.share, o.class.Parameters["fileServer"] = nil, "other" }), "refuse"},
		"bound, and the share is gone, and the class means another layout":                       {bound(func(o *observed) { o.share, o.class.Parameters["layout"] = nil, "Distributed" }), "refuse"},
		"bound, and the share is gone, and the class means directories of one": {bound(func(o *observed) {
			o.share, o.class.Parameters["fileShare"], o.class.ReclaimPolicy = nil, "data", ptr.To(keep)
		}), "refuse"},
		"bound, and the share is gone, and the class means another depth": {bound(func(o *observed) {
			o.volume.Annotations["howdah.io/provisioned-layout"] = "Distributed/2"
			o.share, o.class.Parameters["layout"], o.class.Parameters["depth"] = nil, "Distributed", "3"
		}), "refuse"},
		"bound, and the share is gone, and the class means the same depth": {bound(func(o *observed) {
			o.volume.Annotations["howdah.io/provisioned-layout"] = "Distributed/2"
			o.share, o.class.Parameters["layout"], o.class.Parameters["depth"] = nil, "Distributed", "2"
		}), "share"},
		"bound, and the share is gone, and the volume does not say how its data lies": {bound(func(o *observed) {
			delete(o.volume.Annotations, "howdah.io/provisioned-layout")
			o.share, o.class.Parameters["layout"] = nil, "Distributed"
		}), "share"},
		"a share on the FileServer that the class named before": {unbound(func(o *observed) { o.class.Parameters["fileServer"] = "other" }), "refuse"},
		"bound, and the share is being deleted":                 {bound(func(o *observed) { o.share.DeletionTimestamp = now }), "wait"},
		"a larger claim":                                        {bound(func(o *observed) { o.claim.Spec.Resources.Requests = sized("20Gi") }), "grow"},
		"a larger claim whose volume shows it": {bound(func(o *observed) {
			o.claim.Spec.Resources.Requests, o.volume.Spec.Capacity = sized("20Gi"), sized("20Gi")
		}), "grow"},
		"a larger claim that is kept to its size":         {kept(func(o *observed) { o.claim.Spec.Resources.Requests = sized("20Gi") }), "quota"},
		"a larger claim whose share is yet to hear of it": {kept(func(o *observed) { quotaIs(o, "20Gi", "10Gi", "") }), "wait"},
		"a larger claim whose share has the quota":        {kept(func(o *observed) { quotaIs(o, "20Gi", "20Gi", "") }), "grow"},
		"a larger claim whose share has more":             {kept(func(o *observed) { quotaIs(o, "30Gi", "30Gi", "") }), "grow"},
		"a larger claim than the storage":                 {kept(func(o *observed) { quotaIs(o, "20Gi", "10Gi", v1alpha1.ReasonQuotaAboveCapacity) }), "refuse"},
		"a larger claim whose share was refused before": {kept(func(o *observed) {
			quotaIs(o, "20Gi", "10Gi", v1alpha1.ReasonQuotaAboveCapacity)
			o.share.Generation++
		}), "wait"},
		"one that was lowered after it was refused": {kept(func(o *observed) {
			quotaIs(o, "1Ti", "10Gi", v1alpha1.ReasonQuotaAboveCapacity)
			o.claim.Status.AllocatedResources = sized("1Ti")
		}), "quota"},
		"one that was lowered while its share gets the quota": {kept(func(o *observed) {
			quotaIs(o, "1Ti", "10Gi", "")
			o.claim.Status.AllocatedResources = sized("1Ti")
		}), "wait"},
		"one that was lowered before its share heard of it": {kept(func(o *observed) {
			quotaIs(o, "10Gi", "10Gi", "")
			o.claim.Status.AllocatedResources = sized("1Ti")
		}), "quota"},
		"one that was lowered when its share has the quota": {kept(func(o *observed) {
			quotaIs(o, "1Ti", "1Ti", "")
			o.claim.Status.AllocatedResources = sized("1Ti")
		}), "grow 1Ti"},
		"one that is larger than a share can be": {kept(func(o *observed) { o.claim.Spec.Resources.Requests = sized("2Ei") }), "refuse"},
		"one that was lowered from more than a share can be": {kept(func(o *observed) {
			quotaIs(o, "10Gi", "10Gi", "")
			o.claim.Status.AllocatedResources = sized("2Ei")
		}), "quota"},
		"one that was lowered where nothing keeps it to a size": {bound(func(o *observed) {
			o.claim.Spec.Resources.Requests, o.claim.Status.AllocatedResources = sized("20Gi"), sized("1Ti")
		}), "grow"},
		"a claim that is kept to its size":       {kept(as), "wait"},
		"a smaller claim":                        {bound(func(o *observed) { o.volume.Spec.Capacity, o.claim.Status.Capacity = sized("20Gi"), sized("20Gi") }), "wait"},
		"one that is deleted while it is bound":  {bound(func(o *observed) { o.volume.DeletionTimestamp = now }), "wait"},
		"one that is deleted before it is bound": {world(func(o *observed) { o.volume.DeletionTimestamp, o.volume.Status.Phase = now, corev1.VolumeAvailable }), "policy Delete"},
		"one that people took from its claim, and deleted": {released(keep, func(o *observed) {
			o.volume.DeletionTimestamp, o.volume.Status.Phase, o.volume.Spec.ClaimRef = now, corev1.VolumeAvailable, nil
		}), "drop volume"},
		"another operator's":                                {released(del, func(o *observed) { o.share, o.unwatched = nil, true }), "wait"},
		"released, Delete":                                  {released(del, as), "policy Delete"},
		"released, Delete, and the share says so":           {released(del, func(o *observed) { o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete }), "delete share"},
		"released, Delete, and the share goes":              {released(del, func(o *observed) { o.share.DeletionTimestamp = now }), "wait"},
		"released, Delete, and the share is gone":           {released(del, noShare), "drop volume"},
		"released, Delete, deleted, and the share is there": {released(del, func(o *observed) { o.volume.DeletionTimestamp = now }), "policy Delete"},
		"released, Retain":                                  {released(keep, as), "wait"},
		"released, Retain by a late change":                 {released(keep, func(o *observed) { o.share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete }), "policy Retain"},
		"released, Retain, deleted":                         {released(keep, func(o *observed) { o.volume.DeletionTimestamp = now }), "drop volume"},
	} {
		if got := does(decide(tc.o)); got != tc.want {
			t.Errorf("%s: %s, want %s", what, got, tc.want)
		}
	}
}

// kept is bound, and the share has the claim's size as its quota.
func kept(change func(*observed)) *observed {
	return bound(func(o *observed) {
		delete(o.volume.Annotations, v1alpha1.CapacityAnnotation)
		o.share.Spec.Quota.Size = quotaFor(o.claim)
		o.share.Status.Quota.Size = quotaFor(o.claim)
		change(o)
	})
}

// quotaIs has a claim of 20Gi whose share is asked for a quota, has another, and may refuse it for a reason.
func quotaIs(o *observed, asked, has, refused string) {
	o.claim.Spec.Resources.Requests = sized("20Gi")
	o.share.Spec.Quota.Size, o.share.Status.Quota.Size = ptr.To(resource.MustParse(asked)), ptr.To(resource.MustParse(has))
	if refused != "" {
		o.share.Status.Conditions = append(o.share.Status.Conditions, metav1.Condition{
			Type: v1alpha1.FileShareQuotaEnforced, Status: metav1.ConditionFalse, Reason: refused, ObservedGeneration: o.share.Generation,
		})
	}
}

func sized(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// A refusal names the field and a good value, and nothing of a namespace that the claim's owner may not read.
func TestRefusals(t *testing.T) {
	for what, tc := range map[string]struct {
		change   func(*observed)
		want, no string
	}{
		"a parameter": {func(o *observed) { o.class.Parameters["fsname"] = "x" }, "StorageClass c: parameter fsname is not known; there are depth,", ""},
		"Block":       {func(o *observed) { o.claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) }, "spec.volumeMode is Block: a share is a file system; leave volumeMode out; make the claim again", ""},
		"one pod": {
			func(o *observed) {
				o.claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
			},
			"spec.accessModes has ReadWriteOncePod, which only CSI volumes have; use ReadWriteMany or ReadWriteOnce", "",
		},
		"a snapshot": {func(o *observed) { o.claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot"} }, "spec.dataSource is set", ""},
		"a selector": {func(o *observed) { o.claim.Spec.Selector = &metav1.LabelSelector{} }, "spec.selector is set", ""},
		"a size":     {func(o *observed) { o.class.Parameters["size"] = "Required" }, "parameter size: Required, and the storage of FileServer fs does not enforce sizes; use a class with size: BestEffort", ""},
		"a size of a directory": {
			func(o *observed) {
				o.class.Parameters["size"], o.class.Parameters["fileShare"], o.class.ReclaimPolicy = "Required", "data", ptr.To(corev1.PersistentVolumeReclaimRetain)
			},
			"parameter size: Required, and nothing keeps a directory of a share to a size; use a class with size: BestEffort, or without fileShare", "",
		},
		"a Ceph with given shares": {func(o *observed) {
			o.share, o.fileServer.Spec.Storage.Ceph.External.Monitors = nil, []string{"10.0.0.1:3300"}
		}, "no place for a new share until its administrator makes one (storage.ceph.external.sharesSecretRef); use a StorageClass with parameter fileShare", ""},
		"a size that no share can have": {func(o *observed) {
			o.fileServer = builders.FileServer("storage", "fs").Provisioned().Build()
			o.fileServer.Spec.AllowedNamespaces = &v1alpha1.AllowedNamespaces{From: v1alpha1.NamespacesFromAll}
			o.share, o.claim.Spec.Resources.Requests = nil, sized("2Ei")
		}, "spec.resources.requests.storage is 2Ei, and a share can have 1Ei; ask for less in a new claim", ""},
		"missing":                             {func(o *observed) { o.fileServer = nil }, `there is no FileServer "fs" in namespace "storage" that allows claims of namespace "team-a"`, ""},
		"not allowed":                         {func(o *observed) { o.fileServer.Spec.AllowedNamespaces = nil }, `there is no FileServer "fs" in namespace "storage" that allows claims of namespace "team-a"`, ""},
		"its own":                             {func(o *observed) { o.fileServer, o.claim.Namespace = nil, "storage" }, `there is no FileServer "fs" in namespace "storage", which StorageClass c names; create it`, ""},
		"not watched":                         {func(o *observed) { o.fileServer, o.unwatched = nil, true }, "ask the administrator of Howdah to add it to the chart's watchNamespaces", ""},
		"a path taken":                        {stalled("team-a"), "FileShare " + volumeName + " says PathConflict; ask the administrator of FileServer fs: kubectl describe fileshare -n storage " + volumeName, "secret-share"},
		"a path taken, to those who may know": {stalled("storage"), "FileShare " + volumeName + " says PathConflict: the path is that of secret-share", ""},
	} {
		got := decide(unbound(tc.change)).refusal
		if !strings.Contains(got, tc.want) || tc.no != "" && strings.Contains(got, tc.no) {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
}

func stalled(namespace string) func(*observed) {
	return func(o *observed) {
		o.claim.Namespace, o.share.Spec.ClaimRef.Namespace = namespace, namespace
		o.share.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPathConflict, Message: "the path is that of secret-share"}}
	}
}

func TestWhatAClaimGets(t *testing.T) {
	o := unbound(func(o *observed) {
		o.claim.ResourceVersion = "7"
		o.claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}
		o.class.MountOptions = []string{"nconnect=2"}
	})
	d := decide(o)
	if want := "/team-a/scratch-3f2a91bc of FileServer fs is the claim's; nothing keeps pods to 10Gi: they can fill what the FileServer's storage has"; d.success != want {
		t.Errorf("got %q, want %q", d.success, want)
	}
	want := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   volumeName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "howdah", "howdah.io/file-server": "fs"},
			Annotations: map[string]string{
				"pv.kubernetes.io/provisioned-by": "howdah.io/share", "howdah.io/provisioned-share": "storage/" + volumeName, "howdah.io/provisioned-layout": "Single", "howdah.io/capacity": "NotEnforced",
			},
			Finalizers: []string{"howdah.io/volume"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: sized("10Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete, StorageClassName: "c", VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
			MountOptions:           []string{"vers=4.1", "hard", "nosuid", "nodev", "acdirmin=1", "acdirmax=2", "nconnect=2"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/team-a/scratch-3f2a91bc"}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "team-a", Name: "scratch", UID: uid, ResourceVersion: "7"},
		},
	}
	if diff := cmp.Diff(want, d.createVolume); diff != "" {
		t.Errorf("volume (-want +got):\n%s", diff)
	}
	o = unbound(func(o *observed) { o.share, o.class.ReclaimPolicy = nil, ptr.To(corev1.PersistentVolumeReclaimRetain) })
	share := &v1alpha1.FileShare{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: volumeName, Labels: map[string]string{"app.kubernetes.io/managed-by": "howdah"}, Finalizers: []string{"howdah.io/file-share"}},
		Spec: v1alpha1.FileShareSpec{
			FileServerRef: v1alpha1.FileServerReference{Name: "fs"}, ClaimRef: v1alpha1.ClaimReference{Namespace: "team-a", Name: "scratch"},
			Path: "/team-a/scratch-3f2a91bc", Layout: v1alpha1.LayoutSingle, UID: ptr.To[int64](0), GID: ptr.To[int64](0), Mode: "0777", ReclaimPolicy: v1alpha1.ReclaimDelete,
		},
	}
	if diff := cmp.Diff(share, decide(o).createShare); diff != "" {
		t.Errorf("share (-want +got):\n%s", diff)
	}
}

func TestWhatAClaimGetsThatIsKeptToItsSize(t *testing.T) {
	p, _ := parametersOf(builders.StorageClass("c").Shares("storage", "fs").Build())
	for asks, want := range map[string]string{"10Gi": "10Gi", "10G": "10G", "1Mi": "4Mi"} {
		claim := builders.Claim("team-a", "scratch", "c").UID(uid).Build()
		claim.Spec.Resources.Requests = sized(asks)
		share := shareFor(claim, p, true)
		if got := share.Spec.Quota.Size.String(); got != want {
			t.Errorf("a claim of %s has a share of %s, not %s", asks, got, want)
		}
		volume := volumeFor(claim, builders.StorageClass("c").Build(), p, share, true)
		if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.String() != asks || !isEnforced(volume) {
			t.Errorf("a claim of %s has a volume of %s, with annotations %v", asks, size.String(), volume.Annotations)
		}
		if again := shareAgain(claim, p, volume); again.Spec.Quota.Size.String() != want {
			t.Errorf("a share that is made again has a quota of %s, not %s", again.Spec.Quota.Size, want)
		}
	}
	provisioned := func(o *observed) { // By a steward, in Ceph.
		external := &o.fileServer.Spec.Storage.Ceph.External
		external.Monitors, external.ProvisioningSecretRef.Name = []string{"10.0.0.1:3300"}, "ceph"
		o.class.Parameters["size"] = "Required"
	}
	made := decide(unbound(func(o *observed) {
		provisioned(o)
		o.share = nil
	})).createShare
	if made == nil || made.Spec.Quota.Size.String() != "10Gi" {
		t.Errorf("a claim of 10Gi where the storage keeps shares to sizes has %+v", made)
	}
	given := decide(unbound(provisioned))
	if want := `/team-a/scratch-3f2a91bc of FileServer fs is the claim's; at 10Gi writes end with "Disk quota exceeded"`; given.success != want || given.createVolume == nil || !isEnforced(given.createVolume) {
		t.Errorf("%q, %+v", given.success, given.createVolume)
	}
	d := decide(kept(func(o *observed) { quotaIs(o, "20Gi", "10Gi", v1alpha1.ReasonQuotaAboveCapacity) }))
	if want := "the claim stays as large as it was: FileShare " + volumeName + " says QuotaAboveCapacity; ask the administrator of FileServer fs, or lower the claim's request"; d.refusal != want || d.failed != ReasonResizeFailed {
		t.Errorf("%s: %s", d.failed, d.refusal)
	}
}

// The cache has every claim of the cluster: of those of others little is kept, and never more than was there.
func TestClaimsOfOthersAreSlim(t *testing.T) {
	mine := builders.Claim("n", "c", "class").UID(uid).Build()
	theirs := builders.Claim("n", "c", "class").UID(uid).With(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{provisionerAnnotation: "other.example.com", "long": strings.Repeat("x", 1000)}
		c.Spec.VolumeName = "v"
	}).Build()
	if got, err := slimClaim(mine.DeepCopy()); err != nil || cmp.Diff(mine, got) != "" {
		t.Errorf("ours: %v, %v", cmp.Diff(mine, got), err)
	}
	want := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: uid}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}}
	if got, err := slimClaim(theirs); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("another's: %v, %v", cmp.Diff(want, got), err)
	}
}

func TestARefusalIsReportedOnce(t *testing.T) {
	var last notified
	for i, tc := range []struct {
		text string
		want bool
	}{{"a", true}, {"a", false}, {"b", true}, {"a", true}} {
		if got := last.isNews("claim", tc.text); got != tc.want {
			t.Errorf("%d: %s is news: %v", i, tc.text, got)
		}
	}
	last.forget("claim")
	if !last.isNews("claim", "a") || !last.isNews("other", "a") {
		t.Error("what was forgotten, and what another claim was notified of, is news")
	}
}

// A share that was deleted below a volume in use comes back where its data is, with the path that is mounted.
func TestALostShareComesBack(t *testing.T) {
	o := bound(func(o *observed) { o.share, o.class.Parameters["path"] = nil, "/other/{claim}" })
	got := decide(o).createShare
	if got == nil || got.Namespace != "storage" || got.Name != volumeName || got.Spec.Path != "/team-a/scratch-3f2a91bc" || got.Spec.ReclaimPolicy != v1alpha1.ReclaimRetain {
		t.Errorf("made again: %+v", got)
	}
}

func TestWhatADecisionReadsPastTheCachesFirst(t *testing.T) {
	volume, share := &corev1.PersistentVolume{}, &v1alpha1.FileShare{}
	for name, tc := range map[string]struct {
		o    observed
		d    decision
		want doubt
	}{
		"nothing":                         {observed{volume: volume}, decision{}, noDoubt},
		"a share is made":                 {observed{}, decision{createShare: share}, noDoubt},
		"a share goes after its volume":   {observed{volume: volume, share: share}, decision{deleteShare: true}, aboutVolume},
		"a share is to take its data":     {observed{volume: volume, share: share}, decision{policy: v1alpha1.ReclaimDelete}, aboutVolume},
		"a share is to keep its data":     {observed{volume: volume, share: share}, decision{policy: v1alpha1.ReclaimRetain}, noDoubt},
		"a share has no claim any more":   {observed{share: share}, decision{deleteShare: true}, aboutNoVolume},
		"a directory has no claim":        {observed{}, decision{removeDirectory: true}, aboutNoVolume},
		"a quota changes":                 {observed{volume: volume, share: share}, decision{quota: resource.NewQuantity(1, resource.BinarySI)}, aboutQuota},
		"a volume goes without its share": {observed{volume: volume}, decision{dropVolume: true}, aboutNoShare},
		"a volume goes, and has a share":  {observed{volume: volume, share: share}, decision{dropVolume: true}, noDoubt},
	} {
		if got := doubtOf(&tc.o, tc.d); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}
