package integration

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/command"
	"github.com/howdah/howdah/test/builders"
)

// spreadInCeph is a FileServer of data servers with their data in Ceph, and a share of that many directories, ready.
func spreadInCeph(replicas, directories int) (namespace string, fs *v1alpha1.FileServer) {
	GinkgoHelper()
	namespace = newNamespace()
	fs = inCeph(namespace, "training", int32(replicas))
	runEverything(namespace, "training")
	create(builders.FileShare(namespace, "data", "training").Path("/data").Directories(fmt.Sprintf("d{0..%d}", directories-1)).Build())
	readyShare(namespace, "data")
	return namespace, fs
}

// connect has a data server tell how many connections it has.
func connect(namespace, server string, used int32) {
	GinkgoHelper()
	object := exists(&internalv1.DataServer{}, namespace, server)
	before := object.DeepCopy()
	object.Status.Connections = internalv1.Connections{Used: &used, Limit: 4096}
	Expect(admin.Status().Patch(ctx, object, client.MergeFrom(before))).To(Succeed())
}

func drainOf(namespace, server string) func() v1alpha1.DrainState {
	return func() v1alpha1.DrainState {
		for _, seen := range exists(&v1alpha1.FileServer{}, namespace, "training").Status.Servers {
			if seen.Name == server {
				return seen.Drain.State
			}
		}
		return "there is no such server"
	}
}

// ownersOf counts the share's directories on each data server; labels are what people look for them by.
func ownersOf(namespace string) func(Gomega) map[string]int {
	return func(g Gomega) map[string]int {
		directories := directoriesOf(namespace, "data")
		for path, directory := range directories {
			g.Expect(directory.Labels[v1alpha1.DataServerLabel]).To(Equal(directory.Spec.DataServerRef.Name), path)
			g.Expect(directory.Status.State).To(Equal(internalv1.DirectoryReady), path)
		}
		return perServer(directories)
	}
}

func eventsOf(namespace, reason string) (notes []string) {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(admin.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	for _, event := range list.Items {
		if event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

func refusalsOfMoves(namespace string) func() []string {
	return func() []string { return eventsOf(namespace, "MoveRefused") }
}

func askToMove(fs *v1alpha1.FileServer, requests ...placement.Request) {
	GinkgoHelper()
	change(fs, func(fs *v1alpha1.FileServer) {
		fs.Annotations = map[string]string{v1alpha1.MovesAnnotation: placement.FormatRequests(requests)}
	})
}

// awaitMoves waits until nothing is asked for any more.
func awaitMoves(namespace string) *v1alpha1.FileServer {
	GinkgoHelper()
	fs := &v1alpha1.FileServer{}
	Eventually(func() string {
		return exists(fs, namespace, "training").Annotations[v1alpha1.MovesAnnotation]
	}, timeout, "100ms").Should(BeEmpty())
	return fs
}

var _ = Describe("A directory in Ceph", func() {
	It("gets another data server when that is asked for, and what can't be is refused by an event", func() {
		namespace, fs := spreadInCeph(2, 2)
		owner := directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name
		other := map[string]string{"training-0": "training-1", "training-1": "training-0"}[owner]
		askToMove(fs, placement.Request{Share: "data", Path: "d0", To: other}, placement.Request{Share: "data", Path: "nowhere", To: other},
			placement.Request{Share: "data", Path: "d1", To: "training-7"})
		awaitMoves(namespace)
		moved := directoriesOf(namespace, "data")["d0"]
		Expect(moved.Spec.DataServerRef.Name).To(Equal(other))
		Expect(moved.Spec.Identity).To(BeEmpty(), "clients that have it mounted stay")
		Expect(moved.Labels).To(HaveKeyWithValue(v1alpha1.DataServerLabel, other))
		Expect(moved.Labels).To(HaveKeyWithValue(v1alpha1.FileShareLabel, "data"))
		Eventually(refusalsOfMoves(namespace), timeout).Should(ConsistOf(And(ContainSubstring("no directory of that path"), ContainSubstring("no data server of that name"))))
		Eventually(func() *int64 { return exists(fs, namespace, "training").Status.Moves.Done }, timeout).Should(HaveValue(BeEquivalentTo(1)))
		Expect(fs.Status.Moves.Pending).To(HaveValue(BeZero()))
		Expect(shareCondition(namespace, "data", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
	})

	It("has another identity where its clients are to follow it", func() {
		namespace, fs := spreadInCeph(2, 2)
		before := directoriesOf(namespace, "data")["d0"]
		other := map[string]string{"training-0": "training-1", "training-1": "training-0"}[before.Spec.DataServerRef.Name]
		askToMove(fs, placement.Request{Share: "data", Path: "d0", To: other, Clients: placement.Follow})
		awaitMoves(namespace)
		moved := directoriesOf(namespace, "data")["d0"]
		Expect(moved.Spec.DataServerRef.Name).To(Equal(other))
		Expect(moved.Spec.Identity).NotTo(Or(BeEmpty(), Equal(string(before.UID))))
		Expect(moved.UID).To(Equal(before.UID))
	})

	It("stays while a client removes it or while the new data server does not serve the share, and moves after that", func() {
		namespace, fs := spreadInCeph(2, 2)
		directory := directoriesOf(namespace, "data")["d0"]
		owner := directory.Spec.DataServerRef.Name
		other := map[string]string{"training-0": "training-1", "training-1": "training-0"}[owner]
		state := func(state internalv1.DirectoryState) {
			GinkgoHelper()
			now := directoriesOf(namespace, "data")["d0"]
			before := now.DeepCopy()
			now.Status.State = state
			Expect(admin.Status().Patch(ctx, &now, client.MergeFrom(before))).To(Succeed())
		}
		state(internalv1.DirectoryRemoving)
		askToMove(fs, placement.Request{Share: "data", Path: "d0", To: other})
		Eventually(func() *int32 { return exists(fs, namespace, "training").Status.Moves.Pending }, timeout).Should(HaveValue(BeEquivalentTo(1)))
		Expect(directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name).To(Equal(owner))
		state(internalv1.DirectoryReady)
		awaitMoves(namespace)
		Expect(directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name).To(Equal(other))
	})

	It("can't move on volumes, and the status says why", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Directories("d0").Build())
		readyShare(namespace, "data")
		owner := directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name
		askToMove(exists(&v1alpha1.FileServer{}, namespace, "training"), placement.Request{Share: "data", Path: "d0", To: "training-1"})
		awaitMoves(namespace)
		Eventually(refusalsOfMoves(namespace), timeout).Should(ConsistOf(ContainSubstring("spec.moves.copying: Allow")))
		Expect(directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name).To(Equal(owner))
	})

	It("is copied on volumes, step by step, and has another owner when the copy is in its place", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 2)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Directories("d0").Build())
		readyShare(namespace, "data")
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) { fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow })
		before := directoriesOf(namespace, "data")["d0"]
		from := before.Spec.DataServerRef.Name
		to := map[string]string{"training-0": "training-1", "training-1": "training-0"}[from]
		step := func(want internalv1.MoveStep) {
			GinkgoHelper()
			for server, role := range map[string]internalv1.MoveRole{from: internalv1.MoveSource, to: internalv1.MoveTarget} {
				Eventually(func() []string {
					var tasks []string
					for _, task := range exists(&internalv1.DataServer{}, namespace, server).Spec.Moves {
						tasks = append(tasks, fmt.Sprintf("%s %s of %s", task.Role, task.Step, task.Path))
					}
					return tasks
				}, timeout).Should(ConsistOf(fmt.Sprintf("%s %s of d0", role, want)), server)
			}
		}
		// What a data server's supervisor reports.
		report := func(server string, state internalv1.MoveState) {
			GinkgoHelper()
			object := exists(&internalv1.DataServer{}, namespace, server)
			was := object.DeepCopy()
			task := object.Spec.Moves[0]
			object.Status.Moves = []internalv1.MoveReport{{ID: task.ID, State: state, Attempt: task.Attempt}}
			Expect(admin.Status().Patch(ctx, object, client.MergeFrom(was))).To(Succeed())
		}
		askToMove(exists(&v1alpha1.FileServer{}, namespace, "training"), placement.Request{Share: "data", Path: "d0", To: to})
		step(internalv1.MoveCopying)
		report(from, internalv1.MoveStateServing)
		report(to, internalv1.MoveStateCaughtUp)
		step(internalv1.MoveFreezing)
		frozen := directoriesOf(namespace, "data")["d0"]
		Expect(frozen.State()).To(Equal(internalv1.DirectoryMoving))
		report(from, internalv1.MoveStateFrozen)
		report(to, internalv1.MoveStateVerified)
		step(internalv1.MovePlacing)
		owner := directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name
		Expect(owner).To(Equal(from), "until the copy is in the share")
		report(to, internalv1.MoveStatePlaced)
		step(internalv1.MoveLeaving)
		moved := directoriesOf(namespace, "data")["d0"]
		Expect(moved.Spec.DataServerRef.Name).To(Equal(to))
		Expect(moved.Labels).To(HaveKeyWithValue(v1alpha1.DataServerLabel, to))
		Expect(moved.Spec.Identity).NotTo(Or(BeEmpty(), Equal(string(before.UID))))
		report(from, internalv1.MoveStateLeft)
		awaitMoves(namespace)
		Eventually(func() string { return directoriesOf(namespace, "data")["d0"].Spec.Move.ID }, timeout).Should(BeEmpty())
		Eventually(func() *int64 { return exists(&v1alpha1.FileServer{}, namespace, "training").Status.Moves.Done }, timeout).Should(HaveValue(BeEquivalentTo(1)))
		Expect(eventsOf(namespace, "Moved")).To(ConsistOf(ContainSubstring("d0 of share data is on data server " + to)))
		Eventually(func() []internalv1.MoveTask { return exists(&internalv1.DataServer{}, namespace, from).Spec.Moves }, timeout).Should(BeEmpty())
	})

	It("goes to a third data server on volumes when its target has no room for it, and the status says why", func() {
		namespace := newNamespace()
		servingFileServer(namespace, "training", 3)
		create(builders.FileShare(namespace, "data", "training").Path("/data").Directories("d0").Build())
		readyShare(namespace, "data")
		from := directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name
		change(exists(&v1alpha1.FileServer{}, namespace, "training"), func(fs *v1alpha1.FileServer) {
			fs.Spec.Moves.Copying, fs.Spec.Drain = v1alpha1.MoveCopyingAllow, &v1alpha1.Drain{Servers: []string{from}}
		})
		refuse := func(not string) string {
			GinkgoHelper()
			var move internalv1.DirectoryMove
			Eventually(func() string {
				move = directoriesOf(namespace, "data")["d0"].Spec.Move
				return move.Target.DataServerRef.Name
			}, timeout).ShouldNot(BeElementOf("", not))
			to := move.Target.DataServerRef.Name
			object := exists(&internalv1.DataServer{}, namespace, to)
			was := object.DeepCopy()
			object.Status.Moves = []internalv1.MoveReport{{
				ID: move.ID, State: internalv1.MoveStateRefused, Reason: internalv1.MoveNoRoom, Bytes: ptr.To(int64(1 << 20)), Files: ptr.To(int64(7)),
				Message: "the target's volume has 1 MB free, and 4000 MB are needed",
			}}
			Expect(admin.Status().Patch(ctx, object, client.MergeFrom(was))).To(Succeed())
			return to
		}
		message := func() string {
			return meta.FindStatusCondition(exists(&v1alpha1.FileServer{}, namespace, "training").Status.Conditions, v1alpha1.ConditionReady).Message
		}
		full := refuse("")
		third := refuse(full)
		Expect(directoriesOf(namespace, "data")["d0"].Spec.Move.Refusals).To(ConsistOf(HaveField("DataServerRef.Name", full)))
		Expect(eventsOf(namespace, "MoveRedirected")).To(ConsistOf(And(
			ContainSubstring("d0 of share data is copied to data server "+third+", not to "+full), ContainSubstring("4000 MB are needed"))))
		Eventually(message, timeout).Should(And(ContainSubstring("no other data server has room for it"), ContainSubstring("raise spec.storage.volumes.size")))
		Expect(directoriesOf(namespace, "data")["d0"].Spec.DataServerRef.Name).To(Equal(from))
	})

	It("is given to another data server where an annotation asks for all to be spread again, and an event says so", func() {
		namespace, fs := spreadInCeph(3, 6)
		var requests []placement.Request
		for path, directory := range directoriesOf(namespace, "data") {
			if directory.Spec.DataServerRef.Name == "training-2" {
				requests = append(requests, placement.Request{Share: "data", Path: path, To: "training-0"})
			}
		}
		askToMove(fs, requests...)
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 4, "training-1": 2}))
		rebalance := func(most string) {
			GinkgoHelper()
			change(awaitMoves(namespace), func(fs *v1alpha1.FileServer) { fs.Annotations = map[string]string{v1alpha1.RebalanceAnnotation: most} })
		}
		rebalance("100")
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 2, "training-1": 2, "training-2": 2}))
		Expect(awaitMoves(namespace).Annotations).NotTo(HaveKey(v1alpha1.RebalanceAnnotation))
		rebalance("100")
		Eventually(func() map[string]string { return awaitMoves(namespace).Annotations }, timeout).ShouldNot(HaveKey(v1alpha1.RebalanceAnnotation))
		rebalance("many")
		Eventually(func() []string { return append(eventsOf(namespace, "Rebalancing"), refusalsOfMoves(namespace)()...) }, timeout).Should(ContainElements(
			MatchRegexp(`\b2\b`), ContainSubstring("no directory moves"), ContainSubstring("want the number of directories that may move, 1 to 500")))
	})

	It("is moved by kubectl howdah, and all of them are spread again, as it was shown before", func() {
		namespace, fs := spreadInCeph(3, 6)
		kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		access := clientcmdapi.NewConfig()
		access.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		access.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
		access.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
		access.CurrentContext = "x"
		Expect(clientcmd.WriteToFile(*access, kubeconfig)).To(Succeed())
		howdah := func(arguments ...string) (int, string) {
			var out bytes.Buffer
			root := command.New(strings.NewReader(""), &out, &out)
			root.SetArgs(append([]string{"--kubeconfig", kubeconfig}, arguments...))
			return command.Run(ctx, root, &out), out.String()
		}
		for path, directory := range directoriesOf(namespace, "data") {
			if directory.Spec.DataServerRef.Name == "training-2" {
				code, out := howdah("move", "data/"+path, "--to", "training-0")
				Expect(code).To(Equal(command.CodeWell), out)
				Expect(out).To(ContainSubstring("Requested  1 move"))
			}
		}
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 4, "training-1": 2}))
		awaitMoves(namespace)
		_, shown := howdah("rebalance", "training", "--dry-run", "-o", "json")
		Expect(shown).To(ContainSubstring(`"requested": false`))
		Expect(exists(fs, namespace, "training").Annotations).NotTo(HaveKey(v1alpha1.MovesAnnotation))
		code, out := howdah("rebalance", "training", "-o", "json")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(Equal(strings.Replace(shown, `"requested": false`, `"requested": true`, 1)))
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 2, "training-1": 2, "training-2": 2}))
		awaitMoves(namespace)
		code, out = howdah("plan", "rebalance", "training")
		Expect(code).To(Equal(command.CodeWell), out)
		Expect(out).To(ContainSubstring("Nothing to move"))
		code, out = howdah("move", "data/d0/deeper", "--to", "training-0")
		Expect(code).To(Equal(command.CodeNotWell), out)
		code, out = howdah("move", "data/d0")
		Expect(code).To(Equal(command.CodeUsage), out)
	})
})

var _ = Describe("A FileServer in Ceph", func() {
	replicas := func(namespace string) func() int32 {
		return func() int32 { return *exists(&appsv1.StatefulSet{}, namespace, "training").Spec.Replicas }
	}

	It("that is to have fewer data servers empties those that go, waits for their clients, and lets them go", func() {
		namespace, fs := spreadInCeph(3, 6)
		Expect(ownersOf(namespace)(Default)).To(Equal(map[string]int{"training-0": 2, "training-1": 2, "training-2": 2}))
		for _, server := range []string{"training-0", "training-1", "training-2"} {
			connect(namespace, server, 4)
		}
		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Replicas = 2 })
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 3, "training-1": 3}))
		message := expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonDraining)
		Expect(message).To(ContainSubstring("spec.replicas is 2, and there are 3; data servers are made idle: training-2 "))
		Eventually(drainOf(namespace, "training-2"), timeout).Should(Equal(v1alpha1.DrainWaiting))
		Expect(fileServerCondition(namespace, "training", v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionTrue))
		Expect(exists(&internalv1.DataServer{}, namespace, "training-2").Spec.NewDirectories).To(Equal(internalv1.NewDirectoriesForbid))
		loadConfigurations(namespace, "training")
		Consistently(replicas(namespace), "3s").Should(Equal(int32(3)), "clients are connected to it")
		Eventually(func() *int64 { return exists(fs, namespace, "training").Status.Moves.Done }, timeout).Should(HaveValue(BeEquivalentTo(2)))
		Expect(shareCondition(namespace, "data", v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "the share does not notice")

		change(fs, func(fs *v1alpha1.FileServer) { fs.Spec.Drain = &v1alpha1.Drain{TimeoutSeconds: ptr.To(int32(0))} })
		Eventually(replicas(namespace), timeout).Should(Equal(int32(2)))
		isGone(&internalv1.DataServer{}, namespace, "training-2")
		isGone(&corev1.Service{}, namespace, "training-2")
		loadConfigurations(namespace, "training")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		readyShare(namespace, "data")
		Expect(directoriesOf(namespace, "data")).To(HaveLen(6))
	})

	It("has a data server in maintenance: it gets nothing new, and what it had goes to the others", func() {
		namespace, fs := spreadInCeph(3, 3)
		change(fs, func(fs *v1alpha1.FileServer) {
			fs.Spec.Drain = &v1alpha1.Drain{Servers: []string{"training-1"}, TimeoutSeconds: ptr.To(int32(0))}
		})
		Eventually(ownersOf(namespace), timeout).Should(Equal(map[string]int{"training-0": 2, "training-2": 1}))
		change(exists(&v1alpha1.FileShare{}, namespace, "data"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"d{0..5}"} })
		readyShare(namespace, "data")
		Expect(ownersOf(namespace)(Default)).To(Equal(map[string]int{"training-0": 3, "training-2": 3}))
		Eventually(drainOf(namespace, "training-1"), timeout, time.Second).Should(Equal(v1alpha1.DrainDone))
		loadConfigurations(namespace, "training")
		expectCondition(namespace, "training", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		Expect(replicas(namespace)()).To(Equal(int32(3)), "it runs on")

		By("taking it back into service")
		change(exists(fs, namespace, "training"), func(fs *v1alpha1.FileServer) { fs.Spec.Drain = nil })
		Eventually(drainOf(namespace, "training-1"), timeout).Should(BeEmpty())
		change(exists(&v1alpha1.FileShare{}, namespace, "data"), func(s *v1alpha1.FileShare) { s.Spec.Directories = []string{"d{0..8}"} })
		readyShare(namespace, "data")
		Expect(ownersOf(namespace)(Default)).To(Equal(map[string]int{"training-0": 3, "training-1": 3, "training-2": 3}))
	})
})
