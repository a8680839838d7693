package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"sigs.k8s.io/controller-runtime/pkg/client"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// directoriesBelow gives a share's directories whose path starts with prefix, per data server.
func directoriesBelow(ctx SpecContext, shareName, prefix string) map[string][]string {
	GinkgoHelper()
	list := &internalv1.ShareDirectoryList{}
	Expect(c.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.FileShareLabel: shareName})).To(Succeed())
	perServer := map[string][]string{}
	for _, directory := range list.Items {
		if directory.Spec.DataServerRef.Name != "" && strings.HasPrefix(directory.Spec.Path, prefix) {
			perServer[directory.Spec.DataServerRef.Name] = append(perServer[directory.Spec.DataServerRef.Name], directory.Spec.Path)
		}
	}
	return perServer
}

// countsOf gives the number of directories of each data server, ascending; 0 for a server that has none.
func countsOf(perServer map[string][]string) []int {
	counts := make([]int, max(0, serverCount-len(perServer)), serverCount)
	for _, directories := range perServer {
		counts = append(counts, len(directories))
	}
	slices.Sort(counts)
	return counts
}

// evenly gives the counts after more directories went one by one to the server that had the fewest.
func evenly(counts []int, more int) []int {
	counts = slices.Clone(counts)
	for range more {
		counts[0]++
		slices.Sort(counts)
	}
	return counts
}

var _ = Describe("A client's plain mkdir", Label("smoke"), func() {
	It("spreads 12 directories over all servers, usable at once and from another node", func(ctx SpecContext) {
		shell(ctx, clientA, "mkdir /share/spread")
		// Specs that ran before may have left more directories on one server than on another.
		before := countsOf(directoriesBelow(ctx, share, ""))
		shell(ctx, clientA, `set -e
			for i in 0 1 2 3 4 5 6 7 8 9 10 11; do mkdir /share/spread/$i; echo data-$i > /share/spread/$i/file; done`)
		Expect(shell(ctx, clientB, `for i in 0 1 2 3 4 5 6 7 8 9 10 11; do cat /share/spread/$i/file; done`)).
			To(Equal("data-0\ndata-1\ndata-2\ndata-3\ndata-4\ndata-5\ndata-6\ndata-7\ndata-8\ndata-9\ndata-10\ndata-11\n"))
		Expect(countsOf(directoriesBelow(ctx, share, ""))).To(Equal(evenly(before, 12)))
	}, SpecTimeout(bound(time.Minute)))

	It("gives the errno that a user expects", func(ctx SpecContext) {
		const asUser = "setpriv --reuid 1000 --regid 1000 --clear-groups "
		shell(ctx, clientA, "mkdir -m 0755 /share/rootonly && mkdir /share/rootonly/full && touch /share/rootonly/full/file && mkdir /share/rootonly/empty")
		for what, tc := range map[string]struct{ pod, command, want string }{
			"mkdir without permission":              {clientA, asUser + "mkdir /share/rootonly/mine", "Permission denied"},
			"mkdir of a name that exists":           {clientA, "mkdir /share/rootonly/full", "File exists"},
			"rmdir of a directory that holds data":  {clientB, "rmdir /share/rootonly/full", "Directory not empty"},
			"rmdir without permission":              {clientB, asUser + "rmdir /share/rootonly/empty", "Permission denied"},
			"a file created at namespace level":     {clientA, "touch /share/file", "Operation not permitted"},
			"a file between the levels":             {clientA, "touch /share/rootonly/file", "Operation not permitted"},
			"a directory made outside every share":  {clientA, "mkdir /tree/loose", "Read-only file system"},
			"a directory that is not there":         {clientB, "ls /share/rootonly/none", "No such file or directory"},
			"a rename across shares or directories": {clientB, "mv -T --no-copy /share/rootonly/empty /tree/empty", "ross-device link"},
		} {
			output, err := c.Shell(ctx, tc.pod, tc.command)
			Expect(err).To(HaveOccurred(), "%s: %s", what, output)
			Expect(err.Error()).To(ContainSubstring(tc.want), what)
		}
		Expect(shell(ctx, clientB, "rmdir /share/rootonly/empty && ls /share/rootonly")).To(Equal("full\n"))
		Expect(shell(ctx, clientB, "mv -T /share/rootonly/full /share/rootonly/renamed && ls /share/rootonly/renamed")).To(Equal("file\n"))
	}, SpecTimeout(bound(time.Minute)))
})

var _ = Describe("Thousands of directories", Ordered, Label("many"), func() {
	It("are made by two clients at once, many by the same names: unique, balanced, complete", func(ctx SpecContext) {
		// Of the total each client makes a fifth that the other makes too, and two fifths of its own.
		common := total / 5
		perClient := common + (total-common)/2
		shell(ctx, clientA, "mkdir /share/many")
		start := time.Now()
		// Perl, not a process for each directory: what is measured is mkdir.
		const script = `perl -e 'chdir "/share/many" or die; for $i (%d..%d, %d..%d) {
			if (mkdir $i) { $made++ } elsif ($! == 17) { $exist++ } else { die "$i: $!" } } printf "%%d %%d\n", $made, $exist'`
		outputs := make([]string, 2)
		var wait sync.WaitGroup
		for i, pod := range []string{clientA, clientB} {
			wait.Go(func() {
				defer GinkgoRecover()
				first := common + i*(perClient-common)
				outputs[i] = shell(ctx, pod, script, 0, common-1, first, first+perClient-common-1)
			})
		}
		wait.Wait()
		elapsed := time.Since(start)

		made, exist := 0, 0
		for _, output := range outputs {
			var m, e int
			_, err := fmt.Sscan(output, &m, &e)
			Expect(err).NotTo(HaveOccurred(), output)
			made, exist = made+m, exist+e
		}
		Expect(made).To(Equal(total), "every directory was made exactly once")
		Expect(exist).To(Equal(common), "the second of two equal names got EEXIST")
		Expect(strings.TrimSpace(shell(ctx, clientB, "ls /share/many | sort -u | wc -l"))).To(Equal(strconv.Itoa(total)))

		perServer := directoriesBelow(ctx, share, "many/")
		Expect(perServer).To(HaveLen(serverCount))
		for server, directories := range perServer {
			Expect(len(directories)).To(BeNumerically("~", total/serverCount, 20), server)
		}
		AddReportEntry(fmt.Sprintf("%d mkdir by two clients", 2*perClient), fmt.Sprintf("%s, %.1f per second", elapsed.Round(time.Second), float64(2*perClient)/elapsed.Seconds()), ReportEntryVisibilityAlways)
	}, SpecTimeout(bound(12*time.Minute)))

	It("let a client walk over up to 640 of them", func(ctx SpecContext) {
		// Inside the client: kubectl exec costs more than entering a directory.
		walked := min(640, total)
		output := shell(ctx, clientB, `cd /share/many && a=$(date +%%s%%N) && ls 0 && b=$(date +%%s%%N) &&
			find $(seq 1 %d) -type d | wc -l && c=$(date +%%s%%N) && echo $(( (b-a)/1000000 )) $(( (c-b)/1000000 ))`, walked-1)
		var count, entry, walk int
		_, err := fmt.Sscan(output, &count, &entry, &walk)
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(count).To(Equal(walked - 1))
		AddReportEntry("first entry into a directory", fmt.Sprintf("%d ms", entry), ReportEntryVisibilityAlways)
		AddReportEntry(fmt.Sprintf("walk over %d more", walked-1), fmt.Sprintf("%.1f s, %d ms each", float64(walk)/1000, walk/(walked-1)), ReportEntryVisibilityAlways)
	}, SpecTimeout(bound(12*time.Minute)))
})
