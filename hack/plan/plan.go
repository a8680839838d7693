package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/howdah/howdah/internal/brace"
	"github.com/howdah/howdah/internal/placement"
)

// maxDirectories is the operator's limit for a share.
const maxDirectories = 10_000

// input is the file.
type input struct {
	Share       string     `json:"share"`
	Depth       int        `json:"depth"`
	Directories []string   `json:"directories"`
	Servers     []server   `json:"servers"`
	Present     []existing `json:"present"`
}

type server struct {
	Name    string   `json:"name"`
	Ready   *bool    `json:"ready"`
	Volumes []volume `json:"volumes"`
}

type volume struct {
	Size resource.Quantity `json:"size"`
	Used resource.Quantity `json:"used"`
}

type existing struct {
	Share  string `json:"share"`
	Path   string `json:"path"`
	Server string `json:"server"`
	Volume int32  `json:"volume"`
	Count  int    `json:"count"`
}

func parse(text []byte) (input, error) {
	var in input
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		return input{}, fmt.Errorf("%w; see --help for the form", err)
	}
	if in.Share == "" {
		return input{}, fmt.Errorf("share is missing; see --help for the form")
	}
	in.Depth = cmp.Or(in.Depth, 1)
	return in, nil
}

func (in input) slots() []placement.Slot {
	var slots []placement.Slot
	for _, s := range in.Servers {
		volumes := s.Volumes
		if len(volumes) == 0 {
			volumes = make([]volume, 1)
		}
		for index, v := range volumes {
			slots = append(slots, placement.Slot{
				Owner:      placement.Owner{Server: s.Name, Volume: int32(index)},
				Ready:      s.Ready == nil || *s.Ready,
				TotalBytes: v.Size.Value(),
				UsedBytes:  v.Used.Value(),
			})
		}
	}
	return slots
}

// present are the directories that exist, and the owners of those of the share by path.
func (in input) present() ([]placement.Directory, map[string]placement.Owner) {
	var all []placement.Directory
	current := map[string]placement.Owner{}
	for _, e := range in.Present {
		owner := placement.Owner{Server: e.Server, Volume: e.Volume}
		for range max(1, e.Count) {
			all = append(all, placement.Directory{Share: e.Share, Path: e.Path, Owner: owner})
		}
		if e.Share == in.Share && e.Path != "" {
			current[e.Path] = owner
		}
	}
	return all, current
}

// write prints the plan and how the share is spread before and after it.
func write(in input, output io.Writer) error {
	paths, err := brace.Directories(in.Directories, in.Depth, maxDirectories)
	if err != nil {
		return err
	}
	present, current := in.present()
	before := placement.Count(in.slots(), in.Share, present)
	plan, err := placement.Plan(before, current, paths)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DIRECTORY\tSERVER\tVOLUME\t")
	for _, assignment := range plan {
		note := "stays"
		if assignment.New {
			note = "new"
			present = append(present, placement.Directory{Share: in.Share, Path: assignment.Path, Owner: assignment.Owner})
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", assignment.Path, assignment.Owner.Server, assignment.Owner.Volume, note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(output)
	table = tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVER\tVOLUME\tREADY\tOF THIS SHARE\tOF ALL")
	after := placement.Count(in.slots(), in.Share, present)
	for i, slot := range after {
		fmt.Fprintf(table, "%s\t%d\t%t\t%d -> %d\t%d -> %d\n", slot.Server, slot.Volume, slot.Ready,
			before[i].ShareDirectories, slot.ShareDirectories, before[i].Directories, slot.Directories)
	}
	return table.Flush()
}
