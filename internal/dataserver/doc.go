// Package dataserver is the main process of a data server's pod, `howdah server`. It puts the rooms together and chooses the storage back end:
//
//   - supervisor starts ganesha, watches it and restarts it.
//   - exporter brings ganesha and the storage to what the DataServer and its ShareExports ask for, verifies it and reports.
//   - server answers others: probes, metrics, the port for namespace servers; and it looks at ganesha through NFS.
//   - kubeapi watches the objects in the API and writes their statuses.
//   - volumes and ceph are the storage back ends, backend is their interface; exportids is the table of Export_Ids.
//
// The text of ganesha's configuration is internal/ganesha's, names are internal/naming's. It must not import controllers.
package dataserver
