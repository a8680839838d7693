package v1alpha1

// needsUser are the reasons that stay until the user acts. Missing objects (FileServer, FileShare, StorageClass,
// Secret) are not among them, because objects may be created in any order.
var needsUser = map[string]bool{
	ReasonApplyFailed:               true,
	ReasonNameTaken:                 true,
	ReasonPodsRefused:               true,
	ReasonInvalidSpec:               true,
	ReasonExpansionRefused:          true,
	ReasonVolumeRefused:             true,
	ReasonTooFewNodes:               true,
	ReasonHostPortsTaken:            true,
	ReasonNodeAddressMissing:        true,
	ReasonScaleInRefused:            true,
	ReasonRolloutStopped:            true,
	ReasonTooManyNodeNetworks:       true,
	ReasonOutsideAddressesMissing:   true,
	ReasonInUse:                     true,
	ReasonPathConflict:              true,
	ReasonNamespaceNotAllowed:       true,
	ReasonNamespaceNotWatched:       true,
	ReasonTooManyShares:             true,
	ReasonLimitReached:              true,
	ReasonGrowthRefused:             true,
	ReasonInvalidDirectories:        true,
	ReasonDataInSeveralPlaces:       true,
	ReasonQuotaUnsupported:          true,
	ReasonQuotaBelowUse:             true,
	ReasonQuotaAboveCapacity:        true,
	ReasonHotDirectoriesUnsupported: true,
	ReasonInvalidHotDirectories:     true,
	ReasonCloneRefused:              true,
	ReasonCloneFailed:               true,
	ReasonUtilizationTooLow:         true,
	ReasonMeasurementInvalid:        true,
	ReasonSnapshotsUnsupported:      true,
	ReasonSnapshotLost:              true,
	ReasonClockSkewed:               true,
	ReasonClientFailed:              true,
	ReasonDeadlineExceeded:          true,
	ReasonDataOfDeletedNamespace:    true,
	ReasonDirectoriesMissing:        true,
	ReasonDirectoriesElsewhere:      true,
}

// NeedsUser reports whether a condition with this reason stays not True until the user acts.
func NeedsUser(reason string) bool { return needsUser[reason] }

// changes are the reasons for a requested change in progress, as opposed to a failure.
var changes = map[string]bool{
	ReasonPending:                 true,
	ReasonProgressing:             true,
	ReasonClaimsPending:           true,
	ReasonConfigPending:           true,
	ReasonOutsideAddressesPending: true,
	ReasonDraining:                true,
	ReasonRollingOut:              true,
	ReasonRolloutWaiting:          true,
	ReasonDirectoriesPending:      true,
	ReasonInventoryPending:        true,
	ReasonStoragePending:          true,
	ReasonCloning:                 true,
}

// IsChange reports whether a reason is that of a change in progress. An object that was Ready and is not Ready for any
// other reason has an outage.
func IsChange(reason string) bool { return changes[reason] }
