package ceph

import (
	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/controllers/backend/contract"
)

// stewardOf is what the steward of a FileServer gets. Monitors that change reach it by its object, without a restart.
func stewardOf(fs *v1alpha1.FileServer, secret string) *contract.Steward {
	external := fs.Spec.Storage.Ceph.External
	return &contract.Steward{
		Credential: external.ProvisioningSecretRef.Name, Secret: secret,
		Describe: func(spec *internalv1ac.StewardSpecApplyConfiguration) {
			spec.WithCeph(internalv1ac.StewardCeph().
				WithMonitors(external.Monitors...).WithFSID(external.FSID).WithFileSystem(external.FileSystem).WithRecoveryPool(external.RecoveryPool).
				WithProvisioningSecretName(external.ProvisioningSecretRef.Name).WithSharesSecretName(secret))
		},
	}
}
