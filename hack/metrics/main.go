// Command metrics prints docs/reference/metrics.md.
package main

import (
	"fmt"

	"github.com/howdah/howdah/internal/metrics"
)

func main() { fmt.Print(metrics.Reference()) }
