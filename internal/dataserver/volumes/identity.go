package volumes

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// expectation is what the API says of a volume before anybody looks at it.
type expectation struct {
	// id is the identity that the DataServer's status has for the volume, "" if none.
	id string
	// served: the server had shares. A status of a version that gave volumes no identity tells it, too.
	served bool
	// lost: the data of the volume with that identity is given up.
	lost bool
}

func expectationOf(server *internalv1.DataServer, index int32) expectation {
	expected := expectation{
		served: ptr.Deref(server.Status.LastExportNumber, 0) > 0 || ptr.Deref(server.Status.Shares, "") != "",
	}
	for _, known := range server.Status.VolumeIDs {
		if ptr.Deref(known.Index, -1) == index {
			expected.id = known.ID
		}
	}
	expected.lost = expected.id != "" && slices.ContainsFunc(server.Spec.LostVolumes, func(lost internalv1.VolumeIdentity) bool {
		return ptr.Deref(lost.Index, -1) == index && lost.ID == expected.id
	})
	return expected
}

// unfit is why a volume is not the expected one; "" if it may be. Found is the identity in its marker, hasMarker whether there is a marker.
// A marker without an identity is of an earlier version, and says whose the volume is by names alone.
func (e expectation) unfit(hasMarker bool, found string) string {
	switch {
	case e.lost:
		return ""
	case !hasMarker && (e.id != "" || e.served):
		return "has no marker, as an empty volume has none"
	case hasMarker && e.id != "" && found != "" && found != e.id:
		return "is the one with identity " + found
	}
	return ""
}

// differentVolume is the refusal of a volume that is not the one that the server has its data on.
func differentVolume(server *internalv1.DataServer, index int32, unfit, expected string) error {
	claim := claimOf(server, index)
	return fmt.Errorf("claim %s: data server %s has its data on the volume with identity %s, and this volume %s. "+
		"Nothing is written to it or exported. Bring that volume, or a restored copy of it, back under this claim and delete the pod; or, if its data is lost, "+
		"give it up: add {claimName: %s, volumeID: %s} to spec.storage.volumes.lostVolumes of FileServer %s",
		claim, server.Name, expected, unfit, claim, expected, server.Spec.FileServerRef.Name)
}
