package volumes

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// expectation is what the API says about a volume.
type expectation struct {
	// id is the identity that the DataServer's status has for the volume; "" if none.
	id string
	// served: the server had shares. It is also known from statuses of versions that gave volumes no identity.
	served bool
	// lost: the user has given up the data of the volume with this identity.
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

// unfit returns why a volume is not the expected one; "" if it may be. found is the identity in its marker, hasMarker
// whether there is a marker. A marker without an identity was written by an earlier version, and only its names say
// which data server owns the volume.
func (e expectation) unfit(hasMarker bool, found string) string {
	switch {
	case e.lost:
		return ""
	case !hasMarker && (e.id != "" || e.served):
		return "has no marker, like an empty volume"
	case hasMarker && e.id != "" && found != "" && found != e.id:
		return "has the identity " + found
	}
	return ""
}

// differentVolume is the error for a volume that does not have the server's data.
func differentVolume(server *internalv1.DataServer, index int32, unfit, expected string) error {
	claim := claimOf(server, index)
	return fmt.Errorf("claim %s: data server %s has its data on the volume with identity %s, and this volume %s. "+
		"Nothing is written to it or exported. Bring that volume, or a restored copy of it, back under this claim and delete the pod; or, if its data is lost, "+
		"give it up: add {claimName: %s, volumeID: %s} to spec.storage.volumes.lostVolumes of FileServer %s",
		claim, server.Name, expected, unfit, claim, expected, server.Spec.FileServerRef.Name)
}
