package ceph

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
	"github.com/howdah/howdah/test/builders"
)

// server is a DataServer that says this of itself; one with nothing loaded has generation 0.
func server(name string, loaded int64, status metav1.ConditionStatus, reason, message string) internalv1.DataServer {
	s := internalv1.DataServer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if loaded > 0 {
		s.Status.ObservedGeneration = &loaded
	}
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	return s
}

func TestTheConditionSaysWhatDataServersSay(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		servers       []internalv1.DataServer
		want          metav1.ConditionStatus
		reason, words string
	}{
		"no server has reported": {nil, no, v1alpha1.ReasonProgressing, "2 of 2 data servers have not used Ceph file system fs1 yet: training-0, training-1"},
		"all use it":             {[]internalv1.DataServer{server("training-0", 1, yes, "Ready", ""), server("training-1", 1, yes, "Ready", "")}, yes, v1alpha1.ReasonReady, "2 of 2 data servers use Ceph file system fs1"},
		"one can't": {
			[]internalv1.DataServer{server("training-0", 1, yes, "Ready", ""), server("training-1", 0, no, v1alpha1.ReasonCephUnusable, "there is no Secret")},
			no, v1alpha1.ReasonCephUnusable, "1 of 2 data servers can't use Ceph file system fs1 (training-1): there is no Secret",
		},
		"none can": {
			[]internalv1.DataServer{server("training-0", 0, no, v1alpha1.ReasonCephUnusable, "first"), server("training-1", 0, no, v1alpha1.ReasonCephUnusable, "second")},
			no, v1alpha1.ReasonCephUnusable, "2 of 2 data servers can't use Ceph file system fs1 (training-0, training-1): first",
		},
		"one has still to start": {
			[]internalv1.DataServer{server("training-0", 1, yes, "Ready", ""), server("training-1", 0, no, internalv1.ReasonStarting, "ganesha is starting")},
			no, v1alpha1.ReasonProgressing, "1 of 2 data servers have not used Ceph file system fs1 yet: training-1",
		},
		"what is wrong with single shares is theirs": {
			[]internalv1.DataServer{server("training-0", 1, yes, "Ready", ""), server("training-1", 1, yes, internalv1.ReasonExportsFailing, "share a: no entry")},
			yes, v1alpha1.ReasonReady, "2 of 2",
		},
	} {
		s := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("ml", "training").Ceph().Build(), DataServers: map[string]internalv1.DataServer{}}}
		for _, one := range tc.servers {
			s.DataServers[one.Name] = one
		}
		got := s.Condition(2, backendapi.Decision{})
		if got.Status != tc.want || got.Reason != tc.reason || !strings.Contains(got.Message, tc.words) {
			t.Errorf("%s: %s %s %q", name, got.Status, got.Reason, got.Message)
		}
	}
}

// healthy is a data server that serves, and says this of the cluster's health.
func healthy(name, reason, message string) internalv1.DataServer {
	s := server(name, 1, metav1.ConditionTrue, "Ready", "")
	status := metav1.ConditionTrue
	if reason == v1alpha1.ReasonStorageFailing {
		status = metav1.ConditionFalse
	}
	s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: internalv1.StorageHealthy, Status: status, Reason: reason, Message: message})
	return s
}

func TestTheConditionSaysHowCephIs(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	const failing, degraded = v1alpha1.ReasonStorageFailing, v1alpha1.ReasonStorageDegraded
	away := healthy("training-1", failing, "no monitor answers")
	away.Status.Unreachable.SeenBy = "training-namespace-0"
	restarts := healthy("training-1", failing, "no monitor answers")
	restarts.Status.Conditions[0].Status = no
	for name, tc := range map[string]struct {
		servers       []internalv1.DataServer
		want          metav1.ConditionStatus
		reason, words string
	}{
		"well":               {[]internalv1.DataServer{healthy("training-0", "Ready", ""), healthy("training-1", "Ready", "")}, yes, v1alpha1.ReasonReady, "2 of 2 data servers use Ceph file system fs1"},
		"an OSD is down":     {[]internalv1.DataServer{healthy("training-0", degraded, "osd.1"), healthy("training-1", degraded, "osd.1")}, yes, degraded, "2 of 2 data servers use Ceph file system fs1; Ceph reports: osd.1"},
		"one has heard it":   {[]internalv1.DataServer{healthy("training-0", "Ready", ""), healthy("training-1", degraded, "osd.1")}, yes, degraded, "Ceph reports to training-1: osd.1"},
		"full":               {[]internalv1.DataServer{healthy("training-0", failing, "full"), healthy("training-1", failing, "full")}, no, failing, "Ceph file system fs1 is failing: full"},
		"one is cut off":     {[]internalv1.DataServer{healthy("training-0", degraded, "osd.1"), healthy("training-1", failing, "no monitor answers")}, no, failing, "Ceph file system fs1 is failing to training-1: no monitor answers"},
		"one is away":        {[]internalv1.DataServer{healthy("training-0", "Ready", ""), away}, yes, v1alpha1.ReasonReady, "2 of 2"},
		"one restarts":       {[]internalv1.DataServer{healthy("training-0", "Ready", ""), restarts}, yes, v1alpha1.ReasonReady, "2 of 2"},
		"one says something": {[]internalv1.DataServer{healthy("training-0", degraded, "osd.1"), server("training-1", 1, yes, "Ready", "")}, yes, degraded, "Ceph reports: osd.1"},
	} {
		s := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("ml", "training").Ceph().Build(), DataServers: map[string]internalv1.DataServer{}}}
		for _, one := range tc.servers {
			s.DataServers[one.Name] = one
		}
		got := s.Condition(2, backendapi.Decision{})
		if got.Status != tc.want || got.Reason != tc.reason || !strings.HasSuffix(got.Message, tc.words) && !strings.HasPrefix(got.Message, tc.words) {
			t.Errorf("%s: %s %s %q", name, got.Status, got.Reason, got.Message)
		}
	}
}

func TestAFailingStewardIsReportedAfterAFailingCephAndBeforeADegradedOne(t *testing.T) {
	steward := &internalv1.Steward{}
	steward.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCephUnusable, Message: "no"}}
	for reason, want := range map[string]string{v1alpha1.ReasonStorageFailing: v1alpha1.ReasonStorageFailing, v1alpha1.ReasonStorageDegraded: v1alpha1.ReasonStewardFailing} {
		s := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("ml", "training").Provisioned().Build(), Steward: steward, DataServers: map[string]internalv1.DataServer{
			"training-0": healthy("training-0", reason, "full"),
		}}}
		if got := s.Condition(1, backendapi.Decision{}); got.Reason != want {
			t.Errorf("%s: %s %q", reason, got.Reason, got.Message)
		}
	}
}

func TestARefusedPodOfTheStewardIsReported(t *testing.T) {
	ready := &internalv1.Steward{}
	ready.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}}
	for name, tc := range map[string]struct {
		steward *internalv1.Steward
		server  internalv1.DataServer
		want    string
	}{
		"before it ever ran":       {nil, internalv1.DataServer{}, v1alpha1.ReasonPodsRefused},
		"while data servers serve": {ready, healthy("training-0", "Ready", ""), v1alpha1.ReasonStewardFailing},
	} {
		s := &Storage{Observation: backendapi.Observation{
			FileServer: builders.FileServer("ml", "training").Provisioned().Build(), Steward: tc.steward, StewardRefusal: "exceeded quota: few",
			DataServers: map[string]internalv1.DataServer{"training-0": tc.server},
		}}
		if got := s.Condition(1, backendapi.Decision{}); got.Reason != tc.want || !strings.HasSuffix(got.Message, "the steward's pod is refused: exceeded quota: few") {
			t.Errorf("%s: %s %q", name, got.Reason, got.Message)
		}
	}
}

func TestCapacityIsThatOfTheFileSystemOnce(t *testing.T) {
	s := &Storage{Observation: backendapi.Observation{FileServer: builders.FileServer("ml", "training").Ceph().Build(), DataServers: map[string]internalv1.DataServer{}}}
	names := []string{"training-1", "training-0"}
	if got := s.Capacity(names); got.TotalBytes != nil {
		t.Errorf("the capacity is %d without a report", *got.TotalBytes)
	}
	for i, name := range names {
		one := server(name, 1, metav1.ConditionTrue, "Ready", "")
		one.Status.Volumes = []internalv1.VolumeUsage{{Index: ptr.To(int32(0)), TotalBytes: ptr.To(int64(1000)), UsedBytes: ptr.To(int64(100 + i))}}
		s.DataServers[name] = one
	}
	if got := s.Capacity(names); got.TotalBytes == nil || *got.TotalBytes != 1000 || *got.UsedBytes != 101 {
		t.Errorf("two data servers of one file system have %+v", got)
	}
}

func TestAnyDataServerCanHaveAnyDirectoryOnce(t *testing.T) {
	one := server("training-0", 1, metav1.ConditionTrue, "Ready", "")
	slots := Backend{}.Slots(&one, true)
	if len(slots) != 1 || slots[0].Server != "training-0" || slots[0].Volume != 0 || !slots[0].Ready || slots[0].TotalBytes != 0 {
		t.Errorf("%+v", slots)
	}
	if n := (Backend{}).ExportsPerShare(builders.FileServer("ml", "training").Ceph().Build()); n != 1 {
		t.Errorf("%d exports for each share", n)
	}
}

func TestSizesAreKeptWhereHowdahMakesTheShares(t *testing.T) {
	enforces, why := Backend{}.EnforcesSizes(builders.FileServer("ml", "training").Provisioned().Build())
	if !enforces || why != "" {
		t.Errorf("with a steward: %v, %q", enforces, why)
	}
	enforces, why = Backend{}.EnforcesSizes(builders.FileServer("ml", "training").Ceph().Build())
	if enforces || !strings.Contains(why, "ceph fs subvolume resize fs1") || !strings.Contains(why, "provisioningSecretRef") {
		t.Errorf("with directories that were made in advance: %v, %q", enforces, why)
	}
}
