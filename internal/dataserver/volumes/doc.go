// Package volumes is the back end of storage.volumes on the side of the instance manager: volumes of the data server's own, each
// a file system mounted at /volumes/0, /volumes/1 and so on, exported by ganesha's FSAL_VFS. It knows whose a volume is, what is on
// it, and where recovery records and Export_Ids are kept on it. What is exported and when is the manager's to decide.
package volumes
