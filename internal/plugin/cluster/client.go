package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
)

// Cluster is an API server with the rights of a user.
type Cluster struct {
	clients map[schema.GroupVersion]*rest.RESTClient
	codec   runtime.ParameterCodec
}

// New prepares to talk to an API server.
func New(config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, internalv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	c := &Cluster{clients: map[schema.GroupVersion]*rest.RESTClient{}, codec: runtime.NewParameterCodec(scheme)}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// The API server protects itself (priority and fairness).
	config.QPS = -1
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, v1alpha1.GroupVersion, internalv1.GroupVersion} {
		of := rest.CopyConfig(config)
		of.GroupVersion, of.APIPath = &version, "/apis"
		if version.Group == "" {
			of.APIPath = "/api"
		}
		client, err := rest.RESTClientFor(of)
		if err != nil {
			return nil, err
		}
		c.clients[version] = client
	}
	return c, nil
}

// versions are the API versions in use, by group.
var versions = map[string]schema.GroupVersion{
	"": corev1.SchemeGroupVersion, v1alpha1.GroupVersion.Group: v1alpha1.GroupVersion, internalv1.GroupVersion.Group: internalv1.GroupVersion,
}

// of is the client for a resource, named as in view: dataservers.internal.howdah.io.
func (c *Cluster) of(resource string) (client *rest.RESTClient, plural string) {
	plural, group, _ := strings.Cut(resource, ".")
	return c.clients[versions[group]], plural
}

// Get reads an object.
func (c *Cluster) Get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	client, plural := c.of(resource)
	return client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).Do(ctx).Into(into)
}

// Create makes an object.
func (c *Cluster) Create(ctx context.Context, resource, namespace string, object, into runtime.Object) error {
	client, plural := c.of(resource)
	return client.Post().NamespaceIfScoped(namespace, namespace != "").Resource(plural).Body(object).Do(ctx).Into(into)
}

// Patch changes an object by a merge patch. One with metadata.resourceVersion is refused as a conflict if the object is another by then.
func (c *Cluster) Patch(ctx context.Context, resource, namespace, name string, patch []byte, into runtime.Object) error {
	client, plural := c.of(resource)
	return client.Patch(types.MergePatchType).NamespaceIfScoped(namespace, namespace != "").Resource(plural).Name(name).Body(patch).Do(ctx).Into(into)
}

// Page is how many objects are asked for at a time, as kubectl does.
const Page = 500

// list reads a list in pages; each calls with what a page has. namespace "" is everywhere.
func (c *Cluster) list(ctx context.Context, resource, namespace, selector string, into runtime.Object, each func() (next string)) error {
	client, plural := c.of(resource)
	options := metav1.ListOptions{Limit: Page, LabelSelector: selector}
	for {
		err := client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(plural).
			VersionedParams(&options, c.codec).Do(ctx).Into(into)
		if err != nil {
			return err
		}
		if options.Continue = each(); options.Continue == "" {
			return nil
		}
	}
}

// Raw reads a path of the API server, without decoding it.
func (c *Cluster) Raw(ctx context.Context, absolutePath string) ([]byte, error) {
	return raw(c.clients[corev1.SchemeGroupVersion].Get().AbsPath(absolutePath).Do(ctx))
}

// RawPage reads a page of a list without decoding it. next is the continue token of the page before; "" for the first page.
func (c *Cluster) RawPage(ctx context.Context, absolutePath, selector, next string) ([]byte, error) {
	options := metav1.ListOptions{Limit: Page, LabelSelector: selector, Continue: next}
	return raw(c.clients[corev1.SchemeGroupVersion].Get().AbsPath(absolutePath).
		SpecificallyVersionedParams(&options, c.codec, corev1.SchemeGroupVersion).Do(ctx))
}

// raw is what was answered. Result.Error has what the API server says of an error, which Result.Raw and Request.DoRaw don't.
func raw(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// maxAnswer is the longest answer of a pod, in bytes.
const maxAnswer = 4 << 20

// AskPod gets a path of a pod's HTTP server through the API server. It needs the right to get pods/proxy.
func (c *Cluster) AskPod(ctx context.Context, namespace, pod string, port int32, path string, query url.Values) ([]byte, error) {
	client, _ := c.of("pods")
	request := client.Get().Namespace(namespace).Resource("pods").SubResource("proxy").Name(fmt.Sprintf("%s:%d", pod, port)).Suffix(path)
	for name, values := range query {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	answer, err := raw(request.Do(ctx))
	if err != nil {
		return nil, err
	}
	if len(answer) > maxAnswer {
		return nil, fmt.Errorf("pod %s answered with %d bytes", pod, len(answer))
	}
	return answer, nil
}

// Log is the end of a container's log.
func (c *Cluster) Log(ctx context.Context, namespace, pod, container string, lines, bytes int64, previous bool) ([]byte, error) {
	client, _ := c.of("pods")
	return raw(client.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
		VersionedParams(&corev1.PodLogOptions{Container: container, TailLines: &lines, LimitBytes: &bytes, Previous: previous, Timestamps: true}, c.codec).Do(ctx))
}

// Explain adds to an error of the API server what it means and what to do.
func Explain(err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not accept your credentials: log in again, or use another --context (%w)", err)
	case errors.As(err, &status) && status.Status().Code == http.StatusNotFound && status.Status().Details != nil && status.Status().Details.Name == "":
		return fmt.Errorf("this cluster does not have Howdah's kinds: install Howdah first (docs/operate/install.md), or use another --context (%w)", err)
	case !errors.As(err, &status):
		return fmt.Errorf("can't reach the API server: check --context and the kubeconfig (%w)", err)
	}
	return err
}
