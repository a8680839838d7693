// Package fleet is what a data server is like now, and what it may take: the one answer to "may new directories of this share go to that server", for
// shares' declared directories, claims of StorageClasses, clients' mkdir, moves, and the plugin's plans. It is pure: objects in, answers out; it knows no client, no
// clock and no logger. Which of the servers that may take a directory gets it, is internal/placement's to say.
package fleet
