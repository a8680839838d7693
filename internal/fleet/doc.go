// Package fleet answers what a FileServer consists of at one moment: the state of each data server (State), which data servers may take new directories
// of a share (MayTake), and its shares (Share) with their conflicts. Shares' declared directories, claims of StorageClasses, clients' mkdir, moves,
// deletions and the plugin's plans all ask here.
//
// It is pure: objects in, answers out. It must not import a client, a clock or a logger. internal/placement chooses among the data servers that may take
// a directory.
package fleet
