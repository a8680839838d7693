// Package brace decides which directories a share's patterns stand for: it
// expands shell brace expressions and checks the result. It is pure, bounded
// (a count comes before any expansion) and imports the standard library only.
//
// Well-formed expressions expand as in bash: lists {a,b}, ranges {0..15},
// {00..07}, {a..e}, {0..100..10}, nested and multiplied. What bash would leave as it stands,
// such as {a} or {0-15}, is an error here: nobody wants a directory of that name.
package brace
