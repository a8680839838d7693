// Package docs reads the Markdown of this repository: headings, links, blocks of code and tables. Its tests hold that
// links lead somewhere, and that each block of commands says who runs it; tests of other packages compare tables
// with what the code does; hack/site makes web pages of it.
package docs
