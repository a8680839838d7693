// Package load is the load that checks a file system while servers fail (howdah load): what it does in a directory, what it
// expects to find there, and the result. It is pure: it reaches files only through the interface FileSystem, and time only
// through the functions it is given. Package engine runs it on real directories.
package load
