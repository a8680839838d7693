package argocd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The two Git repositories: the chart of this checkout, and what a platform team would keep (storage/TEAM and gate).
const (
	chartRepository    = "howdah"
	platformRepository = "platform"
)

// promoted is made only by a sync whose benchmark has passed: it is a hook of a later wave than the benchmark.
const promoted = `apiVersion: v1
kind: ConfigMap
metadata:
  name: promoted
  annotations:
    argocd.argoproj.io/hook: PostSync
    argocd.argoproj.io/hook-delete-policy: BeforeHookCreation
    argocd.argoproj.io/sync-wave: "1"
data: {release: "1"}
`

const release = `apiVersion: v1
kind: ConfigMap
metadata: {name: release}
data: {release: "1"}
`

const homeShare = `apiVersion: howdah.io/v1alpha1
kind: FileShare
metadata: {name: home}
spec:
  fileServerRef: {name: training}
  path: /home
  layout: Single
  mode: "0777"
`

// makeRepositories makes both repositories, each with one commit.
func makeRepositories(ctx context.Context) {
	GinkgoHelper()
	Expect(os.CopyFS(filepath.Join(repositories, chartRepository, "charts", "howdah"), os.DirFS(filepath.Join(root, "charts", "howdah")))).To(Succeed())
	writePlatform("storage/team-a/fileserver.yaml", replaced(sample("config/samples/fileserver.yaml"), "replicas: 3", "replicas: 2", "size: 2Gi", "size: 1Gi"))
	writePlatform("storage/team-a/fileshare.yaml", sample("config/samples/fileshare.yaml"))
	writePlatform("storage/team-a/home.yaml", homeShare)
	writePlatform("gate/gate.yaml", sample("config/argocd/gate.yaml"))
	writePlatform("gate/promoted.yaml", promoted)
	writePlatform("gate/release.yaml", release)
	for _, repository := range []string{chartRepository, platformRepository} {
		git(ctx, repository, "init", "--quiet", "--initial-branch", "main")
		record(ctx, repository, "first commit")
	}
}

// sample is a file of this checkout.
func sample(path string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, path))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// replaced replaces pairs of an old and a new text, all of which must occur.
func replaced(text string, pairs ...string) string {
	GinkgoHelper()
	for i := 0; i < len(pairs); i += 2 {
		Expect(text).To(ContainSubstring(pairs[i]))
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

func platformPath(path string) string { return filepath.Join(repositories, platformRepository, path) }

func writePlatform(path, text string) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(platformPath(path)), 0o755)).To(Succeed())
	Expect(os.WriteFile(platformPath(path), []byte(text), 0o644)).To(Succeed())
}

// editPlatform replaces texts in a file of the platform repository.
func editPlatform(path string, pairs ...string) {
	GinkgoHelper()
	text, err := os.ReadFile(platformPath(path))
	Expect(err).NotTo(HaveOccurred())
	writePlatform(path, replaced(string(text), pairs...))
}

func git(ctx context.Context, repository string, args ...string) string {
	GinkgoHelper()
	command := exec.CommandContext(ctx, "git", append([]string{"-C", filepath.Join(repositories, repository)}, args...)...)
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "git %v: %s", args, output)
	return strings.TrimSpace(string(output))
}

// record commits what is in the folder of a repository.
func record(ctx context.Context, repository, message string) {
	GinkgoHelper()
	git(ctx, repository, "add", "--all")
	git(ctx, repository, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", message)
}

// commit commits the platform repository and has Argo CD look at it. It returns the revision.
func commit(ctx context.Context, message string) string {
	GinkgoHelper()
	record(ctx, platformRepository, message)
	refreshAll(ctx)
	return head(ctx, platformRepository)
}

func head(ctx context.Context, repository string) string {
	GinkgoHelper()
	return git(ctx, repository, "rev-parse", "HEAD")
}
