package v1alpha1

import "github.com/howdah/howdah/api/v1alpha1"

// StorageHealthy is a condition of a DataServer: the storage reports that it is healthy. It exists only for storage
// that can report this, and has the reasons of a FileServer's StorageAvailable.
const StorageHealthy = "StorageHealthy"

// GraceEnded is a condition of a DataServer: clients may open files and take locks. It is False while ganesha, after its
// start, waits for clients to reclaim what they had open and locked. It keeps its value while no ganesha runs.
const GraceEnded = "GraceEnded"

// Reasons of the conditions of a DataServer, a Steward and a ShareStorage.
const (
	// ReasonStarting: ganesha was started and does not serve yet.
	ReasonStarting = "Starting"
	// ReasonInGrace: clients reclaim the files that they had open, and their locks.
	ReasonInGrace = "InGrace"
	// ReasonStopping: the pod is being stopped.
	ReasonStopping = "Stopping"
	// ReasonServerDown: ganesha exited and is being restarted. The message says how it exited.
	ReasonServerDown = "ServerDown"
	// ReasonPortTaken: another program of the node has a port of the data server, which is on the node's network. The
	// message has the port.
	ReasonPortTaken = "PortTaken"
	// ReasonNodeAddressMissing: the node has no address in the networks of spec.network.hostNetwork.addressesIn of the
	// FileServer. The message has the node and the networks.
	ReasonNodeAddressMissing = v1alpha1.ReasonNodeAddressMissing
	// ReasonVolumeRefused: a volume is missing, unreadable, belongs to another data server, has no file system of its
	// own, or another process of the node still serves from it. The message says which.
	ReasonVolumeRefused = v1alpha1.ReasonVolumeRefused
	// ReasonVolumeFull: there is no room on a volume for what a new share needs. Other shares are served.
	ReasonVolumeFull = "VolumeFull"
	// ReasonCephUnusable: the Ceph file system, or a share's directory in it, can't be used. The message says why.
	ReasonCephUnusable = v1alpha1.ReasonCephUnusable
	// ReasonExportIDsExhausted: the server has 65535 exports, the maximum. Each share has one on each volume.
	ReasonExportIDsExhausted = "ExportIDsExhausted"
	// ReasonExportsFailing: some exports do not serve. The message says which and why.
	ReasonExportsFailing = "ExportsFailing"
	// ReasonCertificateInvalid: the data server has no certificate with which namespace servers can authenticate it, so
	// they can't make changes there. It still serves its clients.
	ReasonCertificateInvalid = "CertificateInvalid"
	// ReasonHandleKeyMissing: ganesha is not started, because the key to sign file handles is missing.
	ReasonHandleKeyMissing = "HandleKeyMissing"
	// ReasonUnsignedHandleAccepted: ganesha accepted a file handle without a valid signature, and was stopped.
	ReasonUnsignedHandleAccepted = "UnsignedHandleAccepted"
	// ReasonReloadFailed: ganesha did not load its new configuration and continues with the old one.
	ReasonReloadFailed = "ReloadFailed"
	// ReasonSecretMissing: the Secret that the steward writes does not exist. The operator creates it again.
	ReasonSecretMissing = "SecretMissing"
	// ReasonStorageLost: the share's directory existed and is gone. It is not created again.
	ReasonStorageLost = "StorageLost"
	// ReasonRemovalFailing: the directory of a deleted share can't be removed. The message says why.
	ReasonRemovalFailing = "RemovalFailing"
)
