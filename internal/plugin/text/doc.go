// Package text draws the output of kubectl howdah: styled words, trees of lines and tables. It decides how text looks, not what it says. It
// gets a width and whether to use colours; the caller asks the terminal for them.
package text
