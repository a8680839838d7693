package view

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/internal/plugin/text"
)

// A node with addresses of two families is one client, by whichever of them it comes. Pods name both, and the first is Kubernetes' own.
func TestANodeIsFoundByEachOfItsAddresses(t *testing.T) {
	w := wellWorld()
	for i, ips := range [][]corev1.HostIP{{{IP: "10.0.0.1"}, {IP: "fd00:1::1"}}, {{IP: "fd00:1::2"}}} {
		pod := readyPod(fmt.Sprintf("train-%d", i), nil)
		pod.Spec.NodeName, pod.Status.HostIP, pod.Status.HostIPs = fmt.Sprintf("node%d", i+1), ips[0].IP, ips
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "unet3d"}}}}
		w.Pods = append(w.Pods, pod)
	}
	answers := []PodAnswer{
		{Pod: "training-namespace-0", NamespaceServers: true, Connections: map[string]int{"fd00:1::1": 16, "fd00:1::2": 16}},
		{Pod: "training-0", Connections: map[string]int{"fd00:1::1": 16, "fd00:1::2": 4, "10.0.0.1": 2}},
	}
	type row struct {
		address, node   string
		namespace, data int
		pods            int
	}
	var got []row
	for _, c := range NewClients(w, &w.FileServers[0], answers).Clients {
		got = append(got, row{c.Address, c.Node, c.NamespaceServers, c.Servers["training-0"], len(c.Pods)})
	}
	want := []row{{"10.0.0.1", "node1", 0, 2, 1}, {"fd00:1::1", "node1", 16, 16, 0}, {"fd00:1::2", "node2", 16, 4, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// The address that has connections has the pods.
	delete(answers[1].Connections, "10.0.0.1")
	if c := NewClients(w, &w.FileServers[0], answers).Clients; len(c) != 2 || c[0].Address != "fd00:1::1" || len(c[0].Pods) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestClientsAreNodesWithTheirPods(t *testing.T) {
	w := wellWorld()
	for i := range 6 {
		pod := readyPod(fmt.Sprintf("train-%d", i), nil)
		pod.Spec.NodeName, pod.Status.HostIP = "node1", "10.0.0.1"
		if i == 5 {
			pod.Spec.NodeName, pod.Status.HostIP = "node2", "10.0.0.2"
		}
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "unet3d"}}}}
		w.Pods = append(w.Pods, pod)
	}
	inline := readyPod("inline", nil)
	inline.Spec.NodeName, inline.Status.HostIP = "node3", "10.0.0.3"
	inline.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.96.0.12", Path: "/home/x"}}}}
	w.Pods = append(w.Pods, inline)
	answers := []PodAnswer{
		{Pod: "training-namespace-0", NamespaceServers: true, Connections: map[string]int{"10.0.0.1": 16, "192.168.7.7": 1}},
		{Pod: "training-namespace-1", NamespaceServers: true, Connections: map[string]int{}},
		{Pod: "training-0", Connections: map[string]int{"10.0.0.1": 16}},
		{Pod: "training-1", Connections: map[string]int{"10.0.0.1": 16, "10.0.0.3": 4}, More: 2},
	}
	golden(t, "clients.txt", NewClients(w, &w.FileServers[0], answers).Text(text.Page{Width: 120}))
	golden(t, "clients-narrow.txt", NewClients(w, &w.FileServers[0], answers).Text(text.Page{Width: 70}))
	for i := range answers {
		answers[i].Connections, answers[i].More = nil, 0
		answers[i].Error = "you may not get pods/proxy in default (Kubernetes' role edit has it)"
	}
	golden(t, "clients-no-right.txt", NewClients(w, &w.FileServers[0], answers).Text(text.Page{Width: 100}))
	encoded, err := Encode(NewClients(w, &w.FileServers[0], answers[:1]), "json")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "clients-no-right.json", encoded)
}
