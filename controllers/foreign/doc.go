// Package foreign reads objects of other operators' kinds, which may not be installed, may come later, and may go: it watches a kind
// from the first time that it can be read, and never fails because one is missing. It keeps what is read of them, and tells of changes.
//
// It decides nothing about them, and must not import a controller or a back end.
package foreign
