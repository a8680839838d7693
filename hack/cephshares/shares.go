package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
)

type options struct{ namespace, fileSystem, pool, secret string }

func run(ctx context.Context, o options, arguments []string, do runner, output io.Writer) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "spec":
		return spec(ctx, o, arguments[1], do, output)
	case len(arguments) > 1 && arguments[0] == "secret":
		return secret(ctx, o, arguments[1], arguments[2:], do, output)
	}
	return errors.New("what is to be done? --help tells")
}

// spec prints a FileServer.
func spec(ctx context.Context, o options, name string, do runner, output io.Writer) error {
	fsid, err := do(ctx, "", "ceph", "fsid")
	if err != nil {
		return err
	}
	dump, err := do(ctx, "", "ceph", "mon", "dump", "--format", "json")
	if err != nil {
		return err
	}
	monitors, err := monitorsOf(dump)
	if err != nil {
		return err
	}
	fs := v1alpha1.FileServer{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileServer"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: name},
	}
	fs.Spec.Storage.Ceph.External = v1alpha1.ExternalCeph{
		Monitors: monitors, FSID: strings.TrimSpace(fsid), FileSystem: o.fileSystem,
		RecoveryPool: o.pool, RecoveryUser: "howdah-rec-" + o.namespace + "-" + name,
		SharesSecretRef: v1alpha1.SecretReference{Name: o.secret},
	}
	text, err := yaml.Marshal(fs)
	if err != nil {
		return err
	}
	_, err = output.Write(text)
	return err
}

// monitorsOf are the addresses of the monitors, by Ceph's second protocol where they speak it.
func monitorsOf(dump string) ([]string, error) {
	var answer struct {
		Mons []struct {
			Addresses struct {
				Vector []struct{ Type, Addr string } `json:"addrvec"`
			} `json:"public_addrs"`
		} `json:"mons"`
	}
	if err := json.Unmarshal([]byte(dump), &answer); err != nil {
		return nil, fmt.Errorf("ceph mon dump: %w", err)
	}
	var monitors []string
	for _, mon := range answer.Mons {
		best := ""
		for _, address := range mon.Addresses.Vector {
			if best == "" || address.Type == "v2" {
				best = address.Addr
			}
		}
		if best != "" {
			monitors = append(monitors, best)
		}
	}
	if len(monitors) == 0 {
		return nil, errors.New("ceph mon dump names no monitor")
	}
	return monitors, nil
}

// secret makes accounts and directories, and the Secret with them.
func secret(ctx context.Context, o options, name string, shares []string, do runner, output io.Writer) error {
	text, err := do(ctx, "", "kubectl", "--namespace", o.namespace, "get", "fileserver", name, "--output", "json")
	if err != nil {
		return fmt.Errorf("the FileServer has to be there first, its data servers wait for the Secret: %w", err)
	}
	var fs v1alpha1.FileServer
	if err := json.Unmarshal([]byte(text), &fs); err != nil {
		return err
	}
	external := fs.Spec.Storage.Ceph.External
	if external.FileSystem == "" {
		return fmt.Errorf("FileServer %s has no storage.ceph.external", name)
	}
	entries := map[string]string{}
	key := func(user string) error {
		entries["client."+user+".keyring"], err = do(ctx, "", "ceph", "auth", "get", "client."+user)
		return err
	}
	uid := string(fs.UID)
	if _, err := do(ctx, "", "ceph", "auth", "get-or-create", "client."+external.RecoveryUser,
		"mon", "allow r", "osd", "allow rwx pool="+external.RecoveryPool+" namespace="+uid+"-*"); err != nil {
		return err
	}
	if err := key(external.RecoveryUser); err != nil {
		return err
	}
	group := ceph.Group(uid)
	if len(shares) > 0 {
		if _, err := do(ctx, "", "ceph", "fs", "subvolumegroup", "create", external.FileSystem, group); err != nil {
			return err
		}
	}
	for _, share := range shares {
		subvolume, user := ceph.Subvolume(uid, share), ceph.ShareUser(uid, share)
		in := func(command string, more ...string) (string, error) {
			words := append([]string{"ceph", "fs", "subvolume", command, external.FileSystem, subvolume}, more...)
			return do(ctx, "", append(words, "--group_name", group)...)
		}
		// In a RADOS namespace of its own: who steals its key gets no other share's objects past the metadata servers.
		if _, err := in("create", "--namespace-isolated"); err != nil {
			return err
		}
		if _, err := in("authorize", user, "--access_level", "rw"); err != nil {
			return err
		}
		path, err := in("getpath")
		if err != nil {
			return err
		}
		if err := key(user); err != nil {
			return err
		}
		entry, err := json.Marshal(map[string]string{"path": strings.TrimSpace(path), "user": user})
		if err != nil {
			return err
		}
		entries[share+".json"] = string(entry)
		fmt.Fprintf(output, "share %s: %s, client.%s\n", share, strings.TrimSpace(path), user)
	}
	return keep(ctx, o.namespace, external.SharesSecretRef.Name, entries, do, output)
}

// keep adds the entries to the Secret. Keys are on no command line.
func keep(ctx context.Context, namespace, name string, entries map[string]string, do runner, output io.Writer) error {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"namespace": namespace, "name": name}, "stringData": entries,
	}
	if found, err := do(ctx, "", "kubectl", "--namespace", namespace, "get", "secret", name, "--ignore-not-found", "--output", "name"); err != nil {
		return err
	} else if found == "" {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := do(ctx, string(text), "kubectl", "create", "--filename", "-"); err != nil {
			return err
		}
	} else {
		patch, err := json.Marshal(map[string]any{"stringData": entries})
		if err != nil {
			return err
		}
		if _, err := do(ctx, string(patch), "kubectl", "--namespace", namespace, "patch", "secret", name, "--type", "merge", "--patch-file", "/dev/stdin"); err != nil {
			return err
		}
	}
	fmt.Fprintf(output, "Secret %s/%s has %d entries more, or the same ones again; data servers see them within two minutes\n", namespace, name, len(entries))
	return nil
}
