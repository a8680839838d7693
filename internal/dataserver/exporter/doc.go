// Package exporter brings ganesha and the storage to what a DataServer and its ShareExports ask for: it prepares directories, allocates
// Export_Ids, writes ganesha's configuration, has it loaded, verifies through NFS what is served, and reports. It works in passes; a pass that
// fails is repeated. It must not import a storage back end.
package exporter
