package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var updateMessages = flag.Bool("update", false, "write the messages about mistakes to testdata/messages.md")

// A mistake, or a first step, and the message for a user without any knowledge.
type mistake struct {
	done    string
	message func() string
}

// refused is what kubectl apply prints of an object, or of a change of it.
func refused(texts ...string) func() string {
	return func() string {
		GinkgoHelper()
		namespace := newNamespace()
		// As kubectl does, which asks for strict validation and sends what the user wrote.
		for _, text := range texts[:len(texts)-1] {
			Expect(admin.Create(ctx, parse(namespace, text), client.FieldValidation("Strict"))).To(Succeed())
		}
		object := parse(namespace, texts[len(texts)-1])
		var err error
		if len(texts) > 1 {
			err = admin.Patch(ctx, object, client.Merge, client.DryRunAll, client.FieldValidation("Strict"))
		} else {
			err = admin.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict"))
		}
		Expect(err).To(HaveOccurred(), "it must be refused: %s", texts)
		message := strings.ReplaceAll(err.Error(), namespace, "NAMESPACE")
		// The rest of a refusal is the API server's own: that rules were not looked at because of this mistake.
		return strings.ReplaceAll(message, `, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`, "")
	}
}

// summaryFor is an object's summary once it has the reason: status, reason, what it is for tools, and the message.
func summaryFor(kind, name, reason string, world func(namespace string)) func() string {
	return func() string {
		GinkgoHelper()
		namespace := newNamespace()
		world(namespace)
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("howdah.io/v1alpha1")
		object.SetKind(kind)
		var message string
		Eventually(func() string {
			Expect(admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(Succeed())
			var found string
			message, found = summaryOf(object)
			return found
		}, timeout, "100ms").Should(Equal(reason), func() string { return message })
		return hashes.ReplaceAllString(strings.ReplaceAll(message, namespace, "NAMESPACE"), "-HASH")
	}
}

// hashes are of names that have the Kubernetes namespace in them.
var hashes = regexp.MustCompile(`-[0-9a-f]{20}\b`)

func summaryOf(object *unstructured.Unstructured) (message, reason string) {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // none gives no text, which fails
	var summary, tools string
	for _, entry := range list {
		c, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		switch c["type"] {
		case "Ready", "Succeeded":
			reason, _ = c["reason"].(string)
			summary = fmt.Sprintf("%s is %s, %s", c["type"], c["status"], c["reason"])
			message, _ = c["message"].(string)
		case "Reconciling", "Stalled":
			tools = fmt.Sprintf(", %s", c["type"])
		}
	}
	return fmt.Sprintf("(%s%s) %s", summary, tools, message), reason
}

var _ = Describe("What a newcomer reads", func() {
	It("is a sentence about the mistake, for thirty of them and more", func() {
		var text strings.Builder
		text.WriteString("# Messages about mistakes and first steps\n\n" +
			"Written by `go test ./test/integration -ginkgo.focus 'What a newcomer reads' -update`. Judge each line as a user without any knowledge would.\n" +
			"A refusal is what `kubectl apply` prints; otherwise it is the object's summary, with its status and reason, and what it is for Flux and Argo CD, in parentheses.\n\n")
		for _, part := range []struct {
			title    string
			mistakes []mistake
		}{{"Refused at once", refusals()}, {"In the status", statuses()}, {"What an object waits for, or what needs a look", waits()}} {
			fmt.Fprintf(&text, "## %s\n\n| what was done | message |\n|---|---|\n", part.title)
			for _, m := range part.mistakes {
				By(m.done)
				message := m.message()
				Expect(message).NotTo(ContainSubstring("should match"), "a regular expression is no sentence")
				fmt.Fprintf(&text, "| %s | %s |\n", m.done, strings.ReplaceAll(strings.Join(strings.Fields(message), " "), "|", `\|`))
			}
			text.WriteByte('\n')
		}
		golden := filepath.Join("testdata", "messages.md")
		if *updateMessages {
			Expect(os.WriteFile(golden, []byte(text.String()), 0o600)).To(Succeed())
		}
		want, err := os.ReadFile(golden)
		Expect(err).NotTo(HaveOccurred())
		Expect(cmp.Diff(string(want), text.String())).To(BeEmpty(), "(-golden +got)")
	})
})
