// Package volumes is a data server's back end for storage.volumes. The data server has its own volumes, each a file
// system mounted at /volumes/0, /volumes/1 and so on, and ganesha's FSAL_VFS exports them. The package knows to which
// data server a volume belongs, which shares are on it, and where its recovery records and Export_Ids are. The exporter
// decides what is exported and when.
package volumes
