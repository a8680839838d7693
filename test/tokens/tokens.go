package tokens

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lifetime of a token, in seconds: longer than any test.
const lifetime = int64(4 * time.Hour / time.Second)

// Pod makes a pod of a service account in the API and gives a configuration with the token that the kubelet would mount
// in it. The pod runs nowhere.
func Pod(ctx context.Context, admin client.Client, config *rest.Config, namespace, account, pod string) (*rest.Config, error) {
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
		Spec:       corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "server", Image: "registry.invalid/none"}}},
	}
	if err := admin.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("making pod %s: %w", pod, err)
	}
	return request(ctx, admin, config, namespace, account, &authenticationv1.BoundObjectReference{
		Kind: "Pod", APIVersion: "v1", Name: object.Name, UID: object.UID,
	})
}

// Account gives a configuration with a token of a service account that was made for no pod.
func Account(ctx context.Context, admin client.Client, config *rest.Config, namespace, account string) (*rest.Config, error) {
	return request(ctx, admin, config, namespace, account, nil)
}

func request(ctx context.Context, admin client.Client, config *rest.Config, namespace, account string, bound *authenticationv1.BoundObjectReference) (*rest.Config, error) {
	seconds := lifetime
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := admin.SubResource("token").Create(ctx, owner, request); err != nil {
		return nil, fmt.Errorf("a token of %s/%s: %w", namespace, account, err)
	}
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = request.Status.Token
	own.QPS = -1
	return own, nil
}

// Install creates the admission policies of config/admission in the repository at root.
func Install(ctx context.Context, admin client.Client, root string) error {
	text, err := os.ReadFile(filepath.Join(root, "config", "admission", "policies.yaml"))
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("config/admission/policies.yaml: %w", err)
		}
		if err := admin.Create(ctx, &object); err != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
