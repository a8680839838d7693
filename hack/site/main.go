// Command site prepares the repository's Markdown for MkDocs, and checks what MkDocs made of it.
//
//	site stage INTO     writes INTO/content and INTO/mkdocs.yml
//	site check PUBLIC   every link of every page leads to a page, a file or a heading, and nothing is loaded from elsewhere
package main

import (
	"fmt"
	"os"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "stage":
		err = stage(".", os.Args[2])
	case len(os.Args) == 3 && os.Args[1] == "check":
		var pages, links int
		if pages, links, err = check(os.Args[2]); err == nil {
			fmt.Printf("site: %d pages, %d links, all of them lead somewhere\n", pages, links)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: site stage INTO | check PUBLIC")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}
