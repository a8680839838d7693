package lab

import (
	"os"
	"sync"

	"github.com/howdah/howdah/hack/lab/internal/plan"
	"github.com/howdah/howdah/hack/lab/internal/sys"
)

// Down removes everything of the instance. It needs no intact record: processes
// are also found by their mark, and the rest goes by the instance's name.
func (l *Lab) Down() error {
	table := l.table()
	var all sync.WaitGroup
	names := table.Names()
	failures := make([]error, len(names))
	for i, name := range names {
		// No time to finish for anybody: the disks go as well.
		all.Go(func() { failures[i] = table.Stop(name, 0) })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	if err := table.Sweep(); err != nil {
		return err
	}
	if err := sys.DeleteNetNS(plan.NetNS(l.Name)); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Dir); err != nil {
		return err
	}
	l.rec = labFile{}
	return nil
}

// Forget removes what is left once nothing needs it: the lock's file and the
// folder of all instances.
func (l *Lab) Forget() {
	_ = os.Remove(StateDir + "/." + l.Name + ".lock")
	_ = os.Remove(StateDir) // Fails, as it should, while another instance is there.
}
