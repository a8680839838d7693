package command

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/placement"
	"github.com/howdah/howdah/internal/plugin/cluster"
	"github.com/howdah/howdah/internal/plugin/text"
	"github.com/howdah/howdah/internal/plugin/view"
	"github.com/howdah/howdah/internal/printable"
)

// cancelled is the answer of move --cancel.
type cancelled struct {
	Share     string `json:"share"`
	Path      string `json:"path"`
	Cancelled bool   `json:"cancelled"`
	To        string `json:"to,omitempty"`
}

// cancelMove takes the request for a directory off the FileServer's annotation. The operator ends a copy that has begun.
func (o *options) cancelMove(ctx context.Context, c *cluster.Cluster, namespace, name, share, path string) error {
	for try := 1; ; try++ {
		var fs v1alpha1.FileServer
		if err := get(ctx, c, view.ResourceFileServers, namespace, name, &fs); err != nil {
			return err
		}
		left, was, err := withoutRequest(&fs, share, path)
		if err != nil {
			return err
		}
		if was.To == "" {
			return o.printCancelled(cancelled{Share: share, Path: path})
		}
		patch, err := patchOf(&fs, left)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, view.ResourceFileServers, namespace, name, patch, &fs)
		if apierrors.IsConflict(err) && try < askTries {
			continue
		}
		if err != nil {
			return cluster.Explain(err)
		}
		return o.printCancelled(cancelled{Share: share, Path: path, Cancelled: true, To: was.To})
	}
}

// withoutRequest are the requests of a FileServer but for the one for a directory, which is returned, too; it is empty if there is none.
func withoutRequest(fs *v1alpha1.FileServer, share, path string) (left []placement.Request, was placement.Request, err error) {
	all, err := placement.ParseRequests(fs.Annotations[v1alpha1.MovesAnnotation])
	if err != nil {
		return nil, was, fmt.Errorf("the annotation %s of FileServer %s can't be read, and the operator takes it off: %w", v1alpha1.MovesAnnotation, fs.Name, err)
	}
	for _, request := range all {
		if request.Share == share && request.Path == path {
			was = request
			continue
		}
		left = append(left, request)
	}
	return left, was, nil
}

func (a *cancelled) text() string {
	// What was typed goes to a terminal.
	share, path := printable.Text(a.Share), printable.Text(a.Path)
	if a.Cancelled {
		return fmt.Sprintf("The request is taken back: %s of share %s does not go to %s, unless its copy is in its place already.\n", path, share, printable.Text(a.To))
	}
	return fmt.Sprintf("There is no request for %s of share %s. If its data server is being emptied, undo that: spec.drain.servers or spec.replicas of the FileServer.\n", path, share)
}

func (o *options) printCancelled(answered cancelled) error {
	err := o.print(answered, func(text.Page) string { return answered.text() })
	if err == nil && !answered.Cancelled {
		return answer(CodeNotWell)
	}
	return err
}
