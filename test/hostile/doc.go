// Package hostile attacks the real ganesha of the server image (internal/ganesha/realtest), and shows what others notice.
//
// TestOperations tries every operation of NFSv4.1 and 4.2 on every kind of handle, with every kind of arguments and for every kind
// of client. TestAttacks runs each attack that was ever found beside a client that behaves well. TestFuzz sends random sequences
// from seeds: in make test those that once ended a server or made a sanitizer report something, in make fuzz-ganesha new ones.
// The scenarios of internal/dataserver check the exact answers of single mends; this package measures whether all of them hold together.
package hostile
