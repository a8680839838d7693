package desired

import (
	"slices"

	internalv1ac "github.com/howdah/howdah/api/internalapi/applyconfiguration/internalapi/v1alpha1"
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/naming"
)

// DataServerObject is the DataServer of one data server. Its exports are ShareExports.
func DataServerObject(in FileServerInput, ordinal int32) *internalv1ac.DataServerApplyConfiguration {
	name := naming.DataServer(in.name(), ordinal)
	meta := labels(naming.SelectDataServers(in.name()))
	meta[v1alpha1.DataServerLabel] = name
	lease, grace := timers(in)
	spec := internalv1ac.DataServerSpec().
		WithFileServerRef(internalv1ac.FileServerReference().WithName(in.name())).
		WithServerScope(string(in.FileServer.UID)).
		WithLeaseSeconds(lease).
		WithGraceSeconds(grace).
		WithMaxConnections(MaxConnections(in.FileServer))
	if in.DirectoryLimits.Total > 0 {
		spec.WithDirectoryLimits(internalv1ac.DirectoryLimits().WithTotal(in.DirectoryLimits.Total).WithPerNamespace(in.DirectoryLimits.PerNamespace))
	}
	for _, network := range in.NodeNetworks {
		spec.WithNodeNetworks(network.String())
	}
	for _, address := range in.LostNodeAddresses[name] {
		spec.WithLostNodeAddresses(address.String())
	}
	for _, address := range in.Near[name].Node {
		spec.WithNodeAddresses(address.String())
	}
	for _, network := range in.Near[name].Zone {
		spec.WithZoneNetworks(network.String())
	}
	if slices.Contains(in.ToBeIdle, name) {
		spec.WithNewDirectories(internalv1.NewDirectoriesForbid)
	}
	for _, task := range in.Moves[name] {
		spec.WithMoves(moveTask(task))
	}
	if in.Storage.Describe != nil {
		in.Storage.Describe(ordinal, spec)
	}
	if address := in.Addresses[name]; address != "" {
		spec.WithAddress(address)
	}
	spec.WithOutsideAddresses(in.OutsideAddresses[name]...)
	return internalv1ac.DataServer(name, in.namespace()).WithLabels(meta).WithSpec(spec)
}

// moveTask is a data server's part of a move.
func moveTask(task internalv1.MoveTask) *internalv1ac.MoveTaskApplyConfiguration {
	applied := internalv1ac.MoveTask().WithID(task.ID).WithRole(task.Role).WithPath(task.Path).
		WithFileShareRef(internalv1ac.FileShareReference().WithName(task.FileShareRef.Name)).
		WithPeer(internalv1ac.DataServerReference().WithName(task.Peer.Name)).
		WithStep(task.Step).WithSequence(task.Sequence)
	applied.Volume, applied.TrashSeconds = task.Volume, task.TrashSeconds
	if task.PeerAddress != "" {
		applied.WithPeerAddress(task.PeerAddress)
	}
	if task.Attempt > 0 {
		applied.WithAttempt(task.Attempt)
	}
	if task.OpenFiles != "" {
		applied.WithOpenFiles(task.OpenFiles)
	}
	if task.MegabytesPerSecond > 0 {
		applied.WithMegabytesPerSecond(task.MegabytesPerSecond)
	}
	if task.Execution != "" {
		applied.WithExecution(task.Execution)
	}
	return applied
}

// maxGrace is ganesha's maximum grace period, in seconds.
const maxGrace = 180

// timers returns lease time and grace period in seconds. If spec.nfs sets neither, they are those of the storage back
// end. A client may renew its lease at the very end of a lease period and reclaim in the next, so if only the lease is
// set, the grace period is at least twice the lease.
func timers(in FileServerInput) (lease, grace int32) {
	lease, grace = in.Storage.LeaseSeconds, in.Storage.GraceSeconds
	nfs := in.FileServer.Spec.NFS
	if nfs == nil {
		return lease, grace
	}
	if nfs.LeaseSeconds != 0 {
		lease, grace = nfs.LeaseSeconds, min(max(grace, 2*nfs.LeaseSeconds), maxGrace)
	}
	if nfs.GraceSeconds != 0 {
		grace = max(nfs.GraceSeconds, lease)
	}
	return lease, grace
}
