package ceph

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

//go:embed testdata/commands.py
var commands string

// account is a Ceph user and its key.
type account struct{ user, key string }

// request is a command, with its arguments, for the mon or the mgr ("to").
type request map[string]any

type answer struct {
	Code    syscall.Errno `json:"code"`
	Output  string        `json:"output"`
	Message string        `json:"message"`
}

func toMon(prefix string, arguments request) request { return to("mon", prefix, arguments) }
func toMgr(prefix string, arguments request) request { return to("mgr", prefix, arguments) }

func to(daemon, prefix string, arguments request) request {
	whole := request{"to": daemon, "prefix": prefix}
	for name, value := range arguments {
		whole[name] = value
	}
	return whole
}

// ask sends the commands in one session and returns their results.
func (a account) ask(ctx context.Context, requests ...request) []answer {
	GinkgoHelper()
	input, err := json.Marshal(map[string]any{"user": a.user, "key": a.key, "monHost": monHost, "requests": requests})
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, "kubectl", "--namespace", cephNamespace, "exec", "--stdin", "ceph-mon-0", "--", "python3", "-c", commands)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &stdout, &stderr
	Expect(command.Run()).To(Succeed(), "%s: %s", a.user, &stderr)
	var answers []answer
	Expect(json.Unmarshal(stdout.Bytes(), &answers)).To(Succeed(), stdout.String())
	Expect(answers).To(HaveLen(len(requests)))
	return answers
}

// must sends one command, fails the spec if it fails, and returns its output.
func (a account) must(ctx context.Context, asked request) string {
	GinkgoHelper()
	got := a.ask(ctx, asked)[0]
	Expect(got.Code).To(BeZero(), "%s: %v: %v: %s", a.user, asked, got.Code, got.Message)
	return got.Output
}

// subvolume is a CephFS subvolume with an account that may use that subvolume and nothing else.
type subvolume struct {
	name, path string
	account
}

// newSubvolume makes a subvolume with the provisioner's account and removes it at the end of the spec.
func newSubvolume(ctx context.Context, name string) subvolume {
	GinkgoHelper()
	// The name is unique to this run.
	name += strings.TrimPrefix(c.Namespace, namespacePrefix)
	user := "howdah-" + name
	in := func(more request) request {
		more["vol_name"], more["group_name"] = filesystem, group
		return more
	}
	requests := []request{
		toMgr("fs subvolumegroup create", in(request{})),
		toMgr("fs subvolume create", in(request{"sub_name": name, "size": 200 << 20, "mode": "777", "namespace_isolated": true})),
		toMgr("fs subvolume authorize", in(request{"sub_name": name, "auth_id": user, "access_level": "rw"})),
		toMgr("fs subvolume getpath", in(request{"sub_name": name})),
		// "fs subvolume authorize" does not return the key.
		toMon("auth get", request{"entity": "client." + user}),
	}
	answers := provisioner.ask(ctx, requests...)
	DeferCleanup(func(ctx SpecContext) {
		provisioner.ask(ctx,
			toMgr("fs subvolume deauthorize", in(request{"sub_name": name, "auth_id": user})),
			toMgr("fs subvolume rm", in(request{"sub_name": name})))
	}, NodeTimeout(limit))
	for i, got := range answers {
		Expect(got.Code).To(BeZero(), "%v: %v: %s", requests[i], got.Code, got.Message)
	}
	var known []struct {
		Key string `json:"key"`
	}
	Expect(json.Unmarshal([]byte(answers[4].Output), &known)).To(Succeed())
	return subvolume{name: name, path: strings.TrimSpace(answers[3].Output), account: account{user: user, key: known[0].Key}}
}

// clientFiles returns the files of /etc/ceph (configuration and keyrings) for the accounts.
func clientFiles(accounts ...account) map[string]string {
	content := map[string]string{
		"ceph.conf": fmt.Sprintf("[global]\nfsid = %s\nmon_host = %s\nlog_file =\nadmin_socket =\n[client]\nclient_mount_timeout = 30\n", fsid, monHost),
	}
	for _, a := range accounts {
		content["ceph.client."+a.user+".keyring"] = fmt.Sprintf("[client.%s]\n\tkey = %s\n", a.user, a.key)
	}
	return content
}

var _ = Describe("The provisioning account", Label("ceph"), func() {
	in := func(groupName string, more request) request {
		more["vol_name"], more["group_name"] = filesystem, groupName
		return more
	}
	// The request that makes the account of a data server's recovery database.
	recovery := func(name string, changed ...string) request {
		caps := []string{
			"mon", "allow r", "mgr", "allow command none", "mds", "allow r path=/.none", "osd", "allow rwx pool=howdah namespace=" + group + "-0",
		}
		for i := 0; i < len(changed); i += 2 {
			for j := 0; j < len(caps); j += 2 {
				if caps[j] == changed[i] {
					caps[j+1] = changed[i+1]
				}
			}
		}
		return toMon("auth get-or-create", request{"entity": "client." + name, "caps": caps})
	}
	const dead = "10.99.99.99:0/1"

	It("allows what Howdah does", func(ctx SpecContext) {
		requests := []request{
			toMgr("fs subvolumegroup create", in(group, request{})),
			toMgr("fs subvolume create", in(group, request{"sub_name": "mine", "size": 100 << 20, "namespace_isolated": true})),
			toMgr("fs subvolume ls", in(group, request{})),
			toMgr("fs subvolume getpath", in(group, request{"sub_name": "mine"})),
			toMgr("fs subvolume info", in(group, request{"sub_name": "mine"})),
			toMgr("fs subvolume resize", in(group, request{"sub_name": "mine", "new_size": "200000000", "no_shrink": true})),
			toMgr("fs subvolume authorize", in(group, request{"sub_name": "mine", "auth_id": "howdah-mine", "access_level": "rw"})),
			toMgr("fs subvolume authorized_list", in(group, request{"sub_name": "mine"})),
			toMon("auth get", request{"entity": "client.howdah-mine"}),
			toMgr("fs subvolume snapshot create", in(group, request{"sub_name": "mine", "snap_name": "one"})),
			toMgr("fs subvolume snapshot ls", in(group, request{"sub_name": "mine"})),
			toMgr("fs subvolume snapshot clone", in(group, request{"sub_name": "mine", "snap_name": "one", "target_sub_name": "copy", "target_group_name": group})),
			toMgr("fs clone status", in(group, request{"clone_name": "copy"})),
			toMgr("fs subvolume deauthorize", in(group, request{"sub_name": "mine", "auth_id": "howdah-mine"})),
			recovery("howdah-rec-test"),
			toMon("osd blocklist", request{"blocklistop": "add", "addr": dead, "expire": 1.5}),
			toMon("auth rm", request{"entity": "client.howdah-rec-test"}),
			toMon("df", request{}),
			toMon("health", request{}),
			toMon("fs dump", request{}),
		}
		for i, got := range provisioner.ask(ctx, requests...) {
			Expect(got.Code).To(BeZero(), "%v: %v: %s", requests[i], got.Code, got.Message)
		}
		// The clone must be complete before the snapshot is deleted.
		Eventually(ctx, func(ctx context.Context) string {
			return provisioner.must(ctx, toMgr("fs clone status", in(group, request{"clone_name": "copy"})))
		}).Should(ContainSubstring(`"complete"`))
		for _, asked := range []request{
			toMgr("fs subvolume snapshot rm", in(group, request{"sub_name": "mine", "snap_name": "one"})),
			toMgr("fs subvolume rm", in(group, request{"sub_name": "mine"})),
			toMgr("fs subvolume rm", in(group, request{"sub_name": "copy"})),
		} {
			provisioner.must(ctx, asked)
		}
	}, SpecTimeout(limit))

	It("allows nothing else", func(ctx SpecContext) {
		requests := []request{
			toMgr("fs subvolumegroup create", in("csi", request{})),
			toMgr("fs subvolume create", in("csi", request{"sub_name": "theirs"})),
			toMgr("fs subvolume ls", in("csi", request{})),
			toMgr("fs subvolume create", request{"vol_name": filesystem, "sub_name": "unowned"}),
			toMgr("fs subvolume authorize", in(group, request{"sub_name": "mine", "auth_id": "rook", "access_level": "rw"})),
			toMgr("fs volume rm", request{"vol_name": filesystem, "yes-i-really-mean-it": "--yes-i-really-mean-it"}),
			toMon("config-key dump", request{}),
			toMon("auth get", request{"entity": "client.admin"}),
			toMon("auth ls", request{}),
			toMon("auth get-or-create", request{"entity": "client.howdah-mine", "caps": []string{"mon", "allow *"}}),
			toMon("auth caps", request{"entity": "client." + provisioner.user, "caps": []string{"mon", "allow *"}}),
			toMon("auth rm", request{"entity": "client.admin"}),
			recovery("other-rec"),
			recovery("howdah-rec-evil", "mon", "allow *"),
			recovery("howdah-rec-evil", "mgr", "allow *"),
			recovery("howdah-rec-evil", "mds", "allow *"),
			recovery("howdah-rec-evil", "osd", "allow *"),
			recovery("howdah-rec-evil", "osd", "allow rwx pool=howdah namespace="+group+", allow *"),
			recovery("howdah-rec-evil", "osd", "allow rwx pool=howdah"),
			toMon("osd blocklist", request{"blocklistop": "rm", "addr": dead}),
			toMon("osd pool delete", request{"pool": "howdah"}),
			toMon("fs fail", request{"fs_name": filesystem}),
			toMon("config set", request{"who": "global", "name": "mds_beacon_grace", "value": "60"}),
		}
		for i, got := range provisioner.ask(ctx, requests...) {
			Expect(got.Code).To(BeElementOf(syscall.EACCES, syscall.EPERM), "%v: %v: %s%s", requests[i], got.Code, got.Message, got.Output)
		}
	}, SpecTimeout(limit))
})
