package argocd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// target is an object of an Application, as Argo CD's API names it.
type target struct{ app, kind, name string }

func (t target) url() string {
	return fmt.Sprintf("http://127.0.0.1:8080/api/v1/applications/%s/resource/actions", t.app)
}

// offered lists the actions that Argo CD's web pages offer for an object, sorted; ! marks those that are disabled.
func offered(ctx context.Context, t target) []string {
	GinkgoHelper()
	query := url.Values{"appNamespace": {argoNamespace}, "namespace": {team}, "group": {"howdah.io"}, "version": {"v1alpha1"}, "kind": {t.kind}, "resourceName": {t.name}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url()+"?"+query.Encode(), nil)
	Expect(err).NotTo(HaveOccurred())
	var answer struct {
		Actions []struct {
			Name     string `json:"name"`
			Disabled bool   `json:"disabled"`
		} `json:"actions"`
	}
	Expect(json.Unmarshal(do(request), &answer)).To(Succeed())
	var names []string
	for _, action := range answer.Actions {
		if action.Disabled {
			names = append(names, "!"+action.Name)
		} else {
			names = append(names, action.Name)
		}
	}
	slices.Sort(names)
	return names
}

// act runs an action on an object, as Argo CD's web pages do.
func act(ctx context.Context, t target, action string) {
	GinkgoHelper()
	body, err := json.Marshal(map[string]string{
		"name": t.app, "appNamespace": argoNamespace, "namespace": team, "group": "howdah.io", "version": "v1alpha1", "kind": t.kind,
		"resourceName": t.name, "action": action,
	})
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url()+"/v2", bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	do(request)
}

// do sends a request to Argo CD's API server, which must answer 200.
func do(request *http.Request) []byte {
	GinkgoHelper()
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(Equal(http.StatusOK), "%s %s: %s", request.Method, request.URL, body)
	return body
}
