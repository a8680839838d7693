// Package ganesha writes nfs-ganesha's configuration file (9.14). It decides which
// options a data server has, their order and their quoting, and that no string of
// ours can become a directive. It is a pure function of its model: it must not
// import a client, a context, a logger or any package of Howdah's.
package ganesha
