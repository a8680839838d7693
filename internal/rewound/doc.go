// Package rewound notices that the API shows an earlier state than before. A watch never does, unless the API's database was restored from
// a backup: https://etcd.io/docs/v3.6/op-guide/recovery/. Then what a process remembers is of a time that is no more.
package rewound
