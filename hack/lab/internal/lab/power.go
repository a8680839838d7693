package lab

import "sync"

// PowerOff stops nodes and control plane as a power cut of the whole site would.
func (l *Lab) PowerOff() error {
	nodes := l.rec.Settings.Machines()
	failures := make([]error, len(nodes)+1)
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() { failures[i] = l.table().Stop(node.Name, 0) })
	}
	all.Go(func() { failures[len(nodes)] = l.plane().Stop(0) })
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

// PowerOn starts everything again, and waits until the nodes are Ready.
func (l *Lab) PowerOn() error { return l.start() }

// Backup copies all objects into a file.
func (l *Lab) Backup(file string) error {
	plane := l.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	return plane.Backup(file, l.rec.Port)
}

// Restore takes the objects of a backup in place of those that are there.
func (l *Lab) Restore(file string) error {
	plane := l.plane()
	if err := plane.Prepare(); err != nil {
		return err
	}
	return plane.Restore(file, l.rec.Port)
}
