package ceph

import (
	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/backendapi"
)

// stewardAt is what the steward of a FileServer gets. Monitors that change reach it by its object, without a restart.
func stewardAt(at place) *backendapi.Steward {
	return &backendapi.Steward{
		Credential: at.credential, Secret: at.secret,
		Describe: func(spec *internalv1ac.StewardSpecApplyConfiguration) {
			spec.WithCeph(internalv1ac.StewardCeph().
				WithMonitors(at.monitors...).WithFSID(at.fsid).WithFileSystem(at.fileSystem).WithRecoveryPool(at.recoveryPool).
				WithProvisioningSecretName(at.credential).WithSharesSecretName(at.secret))
		},
	}
}
