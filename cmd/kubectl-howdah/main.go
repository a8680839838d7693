// Command kubectl-howdah is kubectl howdah: a plugin of kubectl for people, which has none of the controllers in it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/howdah/howdah/internal/plugin/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := command.Run(ctx, command.New(os.Stdin, os.Stdout, os.Stderr), os.Stderr)
	stop()
	os.Exit(code)
}
