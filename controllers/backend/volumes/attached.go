package volumes

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/howdah/howdah/internal/failover"
	"github.com/howdah/howdah/internal/naming"
)

// readAttached reads the volumes of lost data servers, where they are attached, and which nodes could use them. It reads past the cache,
// and nothing while no data server is lost.
func (s *Storage) readAttached(ctx context.Context, live client.Reader) error {
	s.Attached = map[string][]failover.Volume{}
	if len(s.Lost) == 0 {
		return nil
	}
	var attachments storagev1.VolumeAttachmentList
	if err := live.List(ctx, &attachments); err != nil {
		return fmt.Errorf("reading VolumeAttachments: %w", err)
	}
	for name := range s.Lost {
		ordinal, ok := naming.DataServerOrdinal(s.FileServer.Name, name)
		if !ok {
			continue
		}
		for volume := range perServer(s.FileServer) {
			read, err := s.readVolume(ctx, live, naming.VolumeClaim(s.FileServer.Name, ordinal, volume), attachments.Items)
			if err != nil {
				return fmt.Errorf("reading PersistentVolumes: %w", err)
			}
			s.Attached[name] = append(s.Attached[name], read)
		}
	}
	return nil
}

// readVolume reads the volume of a claim. It has no attachments if it is not the claim's own: a claim can name any volume. That is
// what it is refused for, and not its nodes.
func (s *Storage) readVolume(ctx context.Context, live client.Reader, name string, attachments []storagev1.VolumeAttachment) (failover.Volume, error) {
	claim := s.All[name]
	volume := failover.Volume{Claim: name, Name: cmp.Or(claim.Spec.VolumeName, "(no volume)"), Nodes: s.nodesFor(&corev1.PersistentVolume{})}
	if claim.Spec.VolumeName == "" {
		return volume, nil
	}
	var pv corev1.PersistentVolume
	if err := live.Get(ctx, types.NamespacedName{Name: claim.Spec.VolumeName}, &pv); err != nil {
		return volume, client.IgnoreNotFound(err)
	}
	if pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
		return volume, nil
	}
	volume.Nodes = s.nodesFor(&pv)
	if csi := pv.Spec.CSI; csi != nil {
		volume.Driver, volume.Attributes = csi.Driver, csi.VolumeAttributes
	}
	for i := range attachments {
		if source := attachments[i].Spec.Source.PersistentVolumeName; source != nil && *source == pv.Name {
			volume.Attachments = append(volume.Attachments, attachmentOf(&attachments[i]))
		}
	}
	return volume, nil
}

func attachmentOf(attachment *storagev1.VolumeAttachment) failover.Attachment {
	a := failover.Attachment{
		Name: attachment.Name, UID: string(attachment.UID), Version: attachment.ResourceVersion, Node: attachment.Spec.NodeName,
		Ending: attachment.DeletionTimestamp != nil,
	}
	if fault := attachment.Status.DetachError; fault != nil {
		a.Fault = fault.Message
	}
	return a
}

// nodesFor are the nodes that are Ready, may have data servers, and can use a volume by its node affinity.
func (s *Storage) nodesFor(pv *corev1.PersistentVolume) (names []string) {
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if !s.ClosedNodes[node.Name] && isReady(node) && canUse(node, pv) {
			names = append(names, node.Name)
		}
	}
	return names
}

// canUse is false for an affinity that can't be read.
func canUse(node *corev1.Node, pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(pv.Spec.NodeAffinity.Required)
	return err == nil && selector.Match(node)
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
