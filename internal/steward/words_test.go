package steward

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
)

func TestErrorsSayWhatToDo(t *testing.T) {
	cephError := func(code syscall.Errno) error {
		return fmt.Errorf("fs subvolume create: %w", &client.Error{Code: code, Words: "words of Ceph"})
	}
	for want, err := range map[string]error{
		"userID and userKey of Secret ceph must be":     unconnected(cephError(syscall.EACCES), "howdah-provisioner", "ceph", nil),
		"no monitor answers at 10.0.0.1:3300":           unconnected(cephError(syscall.ETIMEDOUT), "u", "ceph", []string{"10.0.0.1:3300"}),
		"making it: client.u may not do that":           refused(cephError(syscall.EACCES), "making it", "u"),
		"#the-account-for-howdah":                       refused(cephError(syscall.EPERM), "making it", "u"),
		"the Ceph cluster is full":                      refused(cephError(syscall.ENOSPC), "making it", "u"),
		"are its managers and metadata servers well":    refused(context.DeadlineExceeded, "making it", "u"),
		"making it: Ceph refused it: fs subvolume crea": refused(cephError(syscall.EINVAL), "making it", "u"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := unconnected(fmt.Errorf("starting howdah-ceph: %w", syscall.ENOENT), "u", "ceph", nil); strings.Contains(err.Error(), "userKey") {
		t.Errorf("a program that is missing is taken for a wrong key: %v", err)
	}
	if isOutage(cephError(syscall.EACCES)) || !isOutage(refused(client.ErrGone, "x", "u")) || !isDenied(refused(cephError(syscall.EPERM), "x", "u")) {
		t.Error("a refusal is taken for an outage, or the other way round")
	}
}

func TestReadCredential(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no Secret":       {nil, "there is no Secret ceph, or it has no entry userID"},
		"no key":          {map[string]string{"userID": "u"}, "no entry userKey"},
		"an empty key":    {map[string]string{"userID": "u", "userKey": " \n"}, "entry userKey of Secret ceph is empty"},
		"client. in it":   {map[string]string{"userID": "client.u", "userKey": "AQ=="}, `leave "client." out`},
		"a line too many": {map[string]string{"userID": "u", "userKey": "AQ==\n[client.admin]"}, "entry userKey of Secret ceph"},
		"a path in it":    {map[string]string{"userID": "../u", "userKey": "AQ=="}, "entry userID of Secret ceph"},
		"as it should be": {map[string]string{"userID": "u\n", "userKey": "AQ/+==\n"}, ""},
	} {
		directory := t.TempDir()
		for entry, text := range tc.files {
			if err := os.WriteFile(filepath.Join(directory, entry), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readCredential(directory, "ceph")
		switch {
		case tc.want == "" && (err != nil || got != (credential{"u", "AQ/+=="})):
			t.Errorf("%s: %v, %v", name, got, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v", name, err)
		case err != nil && strings.Contains(err.Error(), "AQ=="):
			t.Errorf("%s: the key is in the message", name)
		}
	}
}

func TestStorageStatus(t *testing.T) {
	now, generation := metav1.NewTime(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)), int64(3)
	info := &ceph.SubvolumeInfo{Path: "/p", UsedBytes: 7, QuotaBytes: 9}
	for name, tc := range map[string]struct {
		deleting     bool
		data         internalv1.DataPolicy
		seen         sight
		kind, reason string
		holds        bool
		words        string
		path         string
		observed     bool
	}{
		"made":               {seen: sight{user: "u", info: info}, kind: v1alpha1.ConditionReady, holds: true, reason: v1alpha1.ReasonReady, words: "has its subvolume", path: "/p", observed: true},
		"made, without room": {seen: sight{user: "u", info: info, words: "setting the quota: refused"}, kind: v1alpha1.ConditionReady, holds: true, reason: v1alpha1.ReasonReady, words: "setting the quota", path: "/p", observed: true},
		"being cloned":       {seen: sight{reason: v1alpha1.ReasonCloning, words: "since"}, kind: v1alpha1.ConditionReady, reason: v1alpha1.ReasonCloning, words: "since", path: "/before"},
		"to be cloned":       {seen: sight{reason: v1alpha1.ReasonCloning, words: "about", begin: true}, kind: v1alpha1.ConditionReady, reason: v1alpha1.ReasonCloning, words: "about", path: "/before"},
		"refused":            {seen: sight{reason: internalv1.ReasonCephUnusable, words: "no"}, kind: v1alpha1.ConditionReady, reason: internalv1.ReasonCephUnusable, words: "no", path: "/before"},
		"lost":               {seen: sight{reason: internalv1.ReasonStorageLost, words: "gone"}, kind: v1alpha1.ConditionReady, reason: internalv1.ReasonStorageLost, words: "gone", path: "/before"},
		"ended, kept":        {deleting: true, data: internalv1.DataRetain, seen: sight{removed: true}, kind: internalv1.StorageRemoved, holds: true, reason: internalv1.StorageRemoved, words: "its subvolume stays", path: "/before", observed: true},
		"ended, removed":     {deleting: true, data: internalv1.DataDelete, seen: sight{removed: true}, kind: internalv1.StorageRemoved, holds: true, reason: internalv1.StorageRemoved, words: "in Ceph's trash", path: "/before", observed: true},
		"can't end":          {deleting: true, data: internalv1.DataDelete, seen: sight{words: "snapshots"}, kind: internalv1.StorageRemoved, reason: internalv1.ReasonRemovalFailing, words: "snapshots", path: "/before"},
	} {
		storage := &internalv1.ShareStorage{ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: internalv1.ShareStorageSpec{DataPolicy: tc.data}}
		storage.Status.Path = "/before"
		if tc.deleting {
			storage.DeletionTimestamp = &now
		}
		status := storageStatus(storage, tc.seen, now)
		got := meta.FindStatusCondition(status.Conditions, tc.kind)
		if got == nil || (got.Status == metav1.ConditionTrue) != tc.holds || got.Reason != tc.reason || !strings.Contains(got.Message, tc.words) {
			t.Errorf("%s: %+v", name, got)
		}
		if status.Path != tc.path || (status.ObservedGeneration != nil) != tc.observed {
			t.Errorf("%s: path %q, observed %v", name, status.Path, status.ObservedGeneration)
		}
		if (status.CloneBeginTime != nil) != tc.seen.begin {
			t.Errorf("%s: begun at %v", name, status.CloneBeginTime)
		}
		storage.Status = status
		if isEnded(storage) != tc.seen.removed {
			t.Errorf("%s: ended is %v", name, isEnded(storage))
		}
	}
}
