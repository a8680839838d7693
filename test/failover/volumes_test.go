package failover

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// refreshEvery is how often a changed Secret is looked for. A kubelet takes a minute or two; no failover waits for it.
const refreshEvery = 2 * time.Second

// prepare writes what the pod's container gets: its description, volumes and token.
func (p *pod) prepare(ctx context.Context, folder string) error {
	spec, security := &p.object.Spec.Containers[0], p.object.Spec.SecurityContext
	c := &container{
		Folder: folder, Lower: p.node.w.image, Hostname: p.object.Name, Args: spec.Args, Env: p.environment(),
		User: ptr.Deref(security.RunAsUser, 0), Group: ptr.Deref(security.RunAsGroup, 0),
		Mounts: []mount{{Source: p.node.w.binary, Target: entrypoint}},
	}
	hosts := filepath.Join(folder, "hosts")
	if err := os.WriteFile(hosts, fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", p.address, p.object.Name), 0o644); err != nil {
		return err
	}
	c.Mounts = append(c.Mounts, mount{Source: hosts, Target: "/etc/hosts"})
	if ptr.Deref(p.object.Spec.AutomountServiceAccountToken, true) {
		if err := p.writeToken(ctx, filepath.Join(folder, "token"), int(c.Group)); err != nil {
			return err
		}
		c.Mounts = append(c.Mounts, mount{Source: filepath.Join(folder, "token"), Target: serviceToken})
	}
	for _, wanted := range spec.VolumeMounts {
		made, err := p.volume(ctx, folder, wanted, int(c.Group))
		if err != nil {
			return fmt.Errorf("volume %s: %w", wanted.Name, err)
		}
		c.Mounts = append(c.Mounts, made)
	}
	return c.write()
}

// environment is the container's, with the downward API's part.
func (p *pod) environment() []string {
	host, port, _ := strings.Cut(strings.TrimPrefix(p.node.w.config.Host, "https://"), ":")
	all := []string{"PATH=/usr/local/bin:/usr/bin:/usr/sbin", "KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + strings.TrimSuffix(port, "/")}
	for _, variable := range p.object.Spec.Containers[0].Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.FieldRef != nil {
			value = map[string]string{
				"metadata.name": p.object.Name, "metadata.namespace": p.object.Namespace, "metadata.uid": string(p.object.UID),
				"spec.nodeName": p.object.Spec.NodeName, "status.podIP": p.address,
			}[from.FieldRef.FieldPath]
		}
		all = append(all, variable.Name+"="+value)
	}
	return all
}

// writeToken writes what the API server gives the pod's account.
func (p *pod) writeToken(ctx context.Context, folder string, group int) error {
	got, err := p.node.w.kube.CoreV1().ServiceAccounts(p.object.Namespace).CreateToken(ctx, p.object.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(4 * time.Hour / time.Second)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.object.Name, UID: p.object.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return writeFiles(folder, map[string][]byte{
		"token": []byte(got.Status.Token), "ca.crt": p.node.w.config.CAData, "namespace": []byte(p.object.Namespace),
	}, group)
}

// volume makes one of the pod's volumes, or finds it.
func (p *pod) volume(ctx context.Context, folder string, wanted corev1.VolumeMount, group int) (mount, error) {
	for i := range p.object.Spec.Volumes {
		volume := &p.object.Spec.Volumes[i]
		switch {
		case volume.Name != wanted.Name:
		case volume.EmptyDir != nil:
			return mount{Target: wanted.MountPath, Writable: true}, nil
		case volume.Secret != nil:
			source := filepath.Join(folder, "volume-"+volume.Name)
			if err := p.writeSecret(ctx, volume.Secret, source, group); err != nil {
				return mount{}, err
			}
			part := wanted.SubPath
			if wanted.SubPathExpr != "" {
				part = strings.ReplaceAll(wanted.SubPathExpr, "$(POD_NAME)", p.object.Name)
			}
			return mount{Source: filepath.Join(source, part), Target: wanted.MountPath}, nil
		}
	}
	return mount{}, fmt.Errorf("it is none that this stand-in for a kubelet knows")
}

// writeSecret writes a Secret's entries into a folder.
func (p *pod) writeSecret(ctx context.Context, source *corev1.SecretVolumeSource, folder string, group int) error {
	var secret *corev1.Secret
	for {
		var err error
		if secret, err = p.node.w.kube.CoreV1().Secrets(p.object.Namespace).Get(ctx, source.SecretName, metav1.GetOptions{}); err == nil {
			break
		}
		if apierrors.IsNotFound(err) && ptr.Deref(source.Optional, false) {
			return writeFiles(folder, nil, group)
		}
		// A kubelet waits for a Secret that is not there yet.
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
	entries := secret.Data
	if len(source.Items) > 0 {
		entries = map[string][]byte{}
		for _, item := range source.Items {
			entries[item.Path] = secret.Data[item.Key]
		}
	}
	return writeFiles(folder, entries, group)
}

// writeFiles has a folder have these files, which a group may read. Each changes at once.
func writeFiles(folder string, entries map[string][]byte, group int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range entries {
		path := filepath.Join(folder, name)
		if has, err := os.ReadFile(path); err == nil && bytes.Equal(has, content) {
			continue
		}
		next := folder + ".next"
		if err := os.WriteFile(next, content, 0o440); err != nil {
			return err
		}
		if err := os.Chown(next, 0, group); err != nil {
			return err
		}
		if err := os.Rename(next, path); err != nil {
			return err
		}
	}
	return nil
}

// refresh keeps Secrets current that are mounted whole.
func (p *pod) refresh(ctx context.Context, folder string) {
	group := int(ptr.Deref(p.object.Spec.SecurityContext.RunAsGroup, 0))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshEvery):
		}
		for i := range p.object.Spec.Volumes {
			if volume := &p.object.Spec.Volumes[i]; volume.Secret != nil && ptr.Deref(volume.Secret.Optional, false) {
				_ = p.writeSecret(ctx, volume.Secret, filepath.Join(folder, "volume-"+volume.Name), group)
			}
		}
	}
}
