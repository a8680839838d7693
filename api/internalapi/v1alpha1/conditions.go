package v1alpha1

import "github.com/howdah/howdah/api/v1alpha1"

// StorageHealthy is a condition of a DataServer: what keeps the data says that it is well. It is there only where somebody can say it, and
// with the reasons of a FileServer's StorageAvailable.
const StorageHealthy = "StorageHealthy"

// Reasons of the conditions of a DataServer, a Steward and a ShareStorage.
const (
	// ReasonStarting: ganesha has been started and does not serve yet.
	ReasonStarting = "Starting"
	// ReasonStopping: the pod is being stopped.
	ReasonStopping = "Stopping"
	// ReasonServerDown: ganesha ended and is being started again; the message says how it ended.
	ReasonServerDown = "ServerDown"
	// ReasonVolumeRefused: a volume is missing, unreadable, another data server's or no file system of its own; the message says which.
	ReasonVolumeRefused = v1alpha1.ReasonVolumeRefused
	// ReasonCephUnusable: the Ceph file system, or a share's directory in it, can't be used; the message says what is at fault.
	ReasonCephUnusable = v1alpha1.ReasonCephUnusable
	// ReasonExportIDsExhausted: the server has 65535 exports, one for each share and volume.
	ReasonExportIDsExhausted = "ExportIDsExhausted"
	// ReasonExportsFailing: some exports do not serve; the message says which and why.
	ReasonExportsFailing = "ExportsFailing"
	// ReasonCertificateInvalid: the data server has no certificate by which namespace servers can know it, so they can't make
	// changes there. It serves its clients.
	ReasonCertificateInvalid = "CertificateInvalid"
	// ReasonHandleKeyMissing: there is no key to sign file handles with, so ganesha is not started.
	ReasonHandleKeyMissing = "HandleKeyMissing"
	// ReasonHandlesUnsigned: ganesha took a file handle that it did not make, and was stopped.
	ReasonHandlesUnsigned = "HandlesUnsigned"
	// ReasonReloadFailed: ganesha did not take its new configuration and goes on with the old one.
	ReasonReloadFailed = "ReloadFailed"
	// ReasonSecretMissing: the Secret that the steward writes is not there; the operator makes it again.
	ReasonSecretMissing = "SecretMissing"
	// ReasonStorageLost: the place of a share was there and is no more; it is not made again, empty.
	ReasonStorageLost = "StorageLost"
	// ReasonRemovalFailing: the place of a share that is deleted can't be removed; the message says why.
	ReasonRemovalFailing = "RemovalFailing"
)
