package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/load"
	"github.com/howdah/howdah/test/cluster"
)

var (
	// soakFor is how long the soak takes, without what it prepares and checks: SOAK_MINUTES, 5 if it is not set. make soak sets it.
	soakFor time.Duration
	// kills is the number of random kills in a row: HOWDAH_E2E_KILLS.
	kills int
)

func soakLength() (time.Duration, error) {
	minutes, err := numberOf("SOAK_MINUTES", 5)
	return time.Duration(minutes) * time.Minute, err
}

func killCount() (int, error) { return numberOf("HOWDAH_E2E_KILLS", 30) }

func numberOf(variable string, unset int) (int, error) {
	text := os.Getenv(variable)
	if text == "" {
		return unset, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > 10000 {
		return 0, fmt.Errorf("%s=%q: want a number from 1 to 10000", variable, text)
	}
	return number, nil
}

// underMishaps has two clients load directories of the data servers, while do makes mishaps happen. No client may have an error, read wrong
// data or lose a lock, and at the end each finds what the other wrote.
func underMishaps(ctx context.Context, share string, m *mishaps, do func()) {
	GinkgoHelper()
	const dirs = serverCount
	startKillers(ctx)
	object := newShare(share, "/"+share, 1, fmt.Sprintf("d{0..%d}", dirs-1))
	object.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	Expect(c.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleted(ctx, object) }, NodeTimeout(bound(2*time.Minute)))
	Eventually(ctx, func() error { return shareReady(ctx, share) }).Should(Succeed())
	found, err := owners(ctx, share)
	Expect(err).NotTo(HaveOccurred())
	ownersByPath, directories := map[string]string{}, []string{}
	for directory, server := range found {
		path := treeMount + "/" + share + "/" + directory
		ownersByPath[path], directories = server, append(directories, path)
	}
	slices.Sort(directories)
	Expect(directories).To(HaveLen(dirs))

	loads := map[string]*cluster.Load{}
	pods := []string{clientA, clientB}
	for i, pod := range pods {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, pod, "ls "+strings.Join(directories, " "))
			return err
		}).Should(Succeed())
		loads[pod], err = c.StartLoad(ctx, pod, share+"-"+pod, directories,
			// The lab's nodes have a processor each: the load must leave servers and kubelets enough of it.
			"--do", "files,records,opens,lock,random", "--pause", "100ms", "--random-pause", "100ms", "--bytes", "16Mi", "--rival", share+"-"+pods[1-i])
		Expect(err).NotTo(HaveOccurred())
	}
	time.Sleep(3 * time.Second)
	before := endsOf(ctx)
	do()
	time.Sleep(3 * time.Second)

	var ledgers []string
	var results []load.Result
	for _, pod := range pods {
		result, err := loads[pod].Stop(ctx)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("the load in "+pod, result.Text(), ReportEntryVisibilityAlways)
		results = append(results, result)
		ledger, err := loads[pod].Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		ledgers = append(ledgers, ledger)
	}
	m.report(results, ownersByPath)
	for i, pod := range pods {
		Expect(results[i].Verdict(0)).To(Succeed(), "the load in %s", pod)
		audited(ctx, pods[1-i], directories, []string{ledgers[i]})
	}

	killed := m.count(killGanesha)
	// The FileServer's status has ends at most a minute late.
	Eventually(ctx, endsOf).WithTimeout(bound(2*time.Minute)).Should(BeNumerically(">=", before+int64(killed)), "each end of ganesha is counted")
	if killed > 0 {
		Eventually(ctx, func(ctx context.Context) ([]eventsv1.Event, error) {
			var list eventsv1.EventList
			err := c.List(ctx, &list, client.InNamespace(c.Namespace))
			return list.Items, err
		}).WithTimeout(bound(2*time.Minute)).Should(ContainElement(And(
			HaveField("Regarding.Kind", "FileServer"), HaveField("Reason", string(v1alpha1.EndGanesha)), HaveField("Note", ContainSubstring("SIGKILL")),
		)), "events about ends of ganesha")
	}
}

var _ = Describe("Random kills in a row", Label("killed", "random-kills"), func() {
	It("stall the directories of their data server for seconds, and lose nothing", func(ctx SpecContext) {
		m := newMishaps(ctx, seed(), false)
		underMishaps(ctx, "kills-in-a-row", m, func() {
			for range kills {
				m.next(ctx)
			}
		})
		Expect(m.count()).To(BeNumerically(">", 0))
	}, SpecTimeout(bound(30*time.Minute)))
})

// longSoak is how long a soak is at least that has the mishaps of minutes, too: rollouts, drains, moves, and cuts of networks.
const longSoak = 15 * time.Minute

// traveler is a directory that moves from one data server to another and back, while two clients work in it by paths.
type traveler struct {
	loads map[string]*cluster.Load
}

const (
	travelerShare = "traveler"
	travelerPath  = "d0"
)

var travelerDirectories = []string{treeMount + "/" + travelerShare + "/" + travelerPath}

// newTraveler starts the clients, and has moves happen among other mishaps.
func newTraveler(ctx context.Context, m *mishaps) *traveler {
	GinkgoHelper()
	if !inCeph {
		editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves.Copying = v1alpha1.MoveCopyingAllow })
		DeferCleanup(func(ctx SpecContext) {
			editFileServer(ctx, fileServer, func(fs *v1alpha1.FileServer) { fs.Spec.Moves = v1alpha1.Moves{} })
		}, NodeTimeout(bound(time.Minute)))
	}
	share := newShare(travelerShare, "/"+travelerShare, 1, travelerPath)
	share.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	Expect(c.Create(ctx, share)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { deleted(ctx, share) }, NodeTimeout(bound(2*time.Minute)))
	Eventually(ctx, func() error { return shareReady(ctx, travelerShare) }).Should(Succeed())
	t := &traveler{loads: map[string]*cluster.Load{}}
	for _, pod := range []string{clientA, clientB} {
		Eventually(ctx, func(ctx context.Context) error {
			_, err := c.Shell(ctx, pod, "ls "+travelerDirectories[0])
			return err
		}).Should(Succeed())
		var err error
		t.loads[pod], err = c.StartLoad(ctx, pod, travelerShare+"-"+pod, travelerDirectories, "--do", "files,opens", "--pause", "200ms", "--bytes", "16Mi")
		Expect(err).NotTo(HaveOccurred())
	}
	m.kinds = append(m.kinds, mishap{moveDirectory, func(ctx context.Context, _ *mishaps) string {
		GinkgoHelper()
		to := askToMove(ctx, fileServer, travelerShare, travelerPath)
		moved(ctx, fileServer, travelerShare, travelerPath, to)
		return travelerPath + " to " + to
	}})
	return t
}

// arrive ends the loads: they may have had no error, and found no wrong data.
func (t *traveler) arrive(ctx context.Context) {
	GinkgoHelper()
	var ledgers []string
	for _, pod := range []string{clientA, clientB} {
		result := stoppedAfterMoves(ctx, t.loads[pod])
		AddReportEntry("the load in the directory that moves, in "+pod, result.Text(), ReportEntryVisibilityAlways)
		ledger, err := t.loads[pod].Ledger(ctx)
		Expect(err).NotTo(HaveOccurred())
		ledgers = append(ledgers, ledger)
	}
	for i, pod := range []string{clientA, clientB} {
		audited(ctx, pod, travelerDirectories, []string{ledgers[1-i]})
	}
}

// The soak takes an hour where it is asked for (make soak), else five minutes.
var _ = Describe("A FileServer under load, with random mishaps for a long time", Label("soak"), func() {
	It("gives no error, no wrong data and no stolen lock", func(ctx SpecContext) {
		m := newMishaps(ctx, seed(), true)
		var moving *traveler
		if soakFor >= longSoak {
			moving = newTraveler(ctx, m)
		}
		underMishaps(ctx, "soak", m, func() {
			for until := time.Now().Add(soakFor); time.Now().Before(until); {
				m.next(ctx)
			}
		})
		Expect(m.count()).To(BeNumerically(">", 0))
		if moving != nil {
			moving.arrive(ctx)
		}
	}, SpecTimeout(24*time.Hour))
})
