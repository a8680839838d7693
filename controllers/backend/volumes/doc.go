// Package volumes is the back end of storage.volumes on the side of the operator: PersistentVolumeClaims of each data server's own,
// from one StorageClass, which outlive it. What is on them is the supervisor's business (internal/dataserver/volumes).
package volumes
