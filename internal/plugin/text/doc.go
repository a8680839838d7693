// Package text draws what kubectl howdah says: words with a style, trees of lines and tables. It decides how something looks and never
// what is said. It knows a width and whether there are colours, and nothing of terminals: who prints asks those.
package text
