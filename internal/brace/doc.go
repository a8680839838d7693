// Package brace expands the patterns of a share's directories: shell brace expressions. It checks the result, is pure, counts before it
// expands, and imports the standard library only.
//
// Well-formed expressions expand as in bash: lists {a,b}, ranges {0..15}, {00..07}, {a..e}, {0..100..10}, nested and multiplied. What bash
// leaves unexpanded, such as {a} or {0-15}, is an error here: it is a typing error, not the name of a directory.
package brace
