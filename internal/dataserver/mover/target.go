package mover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/moving"
)

const (
	// shortPass is how long a pass takes at the most for the directory to be frozen next: what changes meanwhile is copied while clients wait, for
	// moving.FreezeLimit at most.
	shortPass = 5 * time.Second
	// passPause is the least pause between two passes. A pass that takes longer is followed by a pause as long as it: clients need the servers, too.
	passPause = time.Second
	// retryAfter is the pause after a step that failed, notYetAfter after one that needs the other server's step.
	retryAfter  = 2 * time.Second
	notYetAfter = 100 * time.Millisecond
	// spareOfVolume is the part of the target's volume that a copy leaves free.
	spareOfVolume = moving.SpareOfVolume
)

// copying is what the target knows of its passes. It is not on the volume: after a restart every file is compared again.
type copying struct {
	// measured: the rest of the copy had room. sized: bytes and files are known.
	measured, sized bool
	// since is the source's time at the beginning of the last pass that compared every byte; 0: there was none.
	since int64
	// sinceHere is the same moment by this process\'s clock.
	sinceHere time.Time
	passes    int32
	// caughtUp: the last pass of this attempt was short. took is how long it took.
	caughtUp bool
	took     time.Duration
	attempt  int32
	// frozen is the last attempt in which the directory was frozen.
	frozen int32
	bytes  int64
	files  int64
	copied int64
}

func (c *copying) report(task *internalv1.MoveTask, state internalv1.MoveState) internalv1.MoveReport {
	report := internalv1.MoveReport{ID: task.ID, State: state, Attempt: task.Attempt, Passes: c.passes}
	if c.sized {
		bytes, files, copied := c.bytes, c.files, c.copied
		report.Bytes, report.Files, report.CopiedBytes = &bytes, &files, &copied
	}
	return report
}

// errRefused is why a move is not possible at all, or, with noRoom, not to this data server.
type errRefused struct {
	why    string
	noRoom bool
}

func (e *errRefused) Error() string { return e.why }

// targetStep does what the target's task asks for, and returns what to report and when to look again, 0 for when the task changes.
func (m *Mover) targetStep(ctx context.Context, where place, task *internalv1.MoveTask, c *copying) (internalv1.MoveReport, time.Duration) {
	state, again := internalv1.MoveStateCopying, time.Duration(0)
	j, err := where.read()
	asks := err == nil && j != nil && j.isPlacing()
	isHere := false
	if err == nil && j == nil && task.Step != internalv1.MoveLeaving {
		isHere, err = m.hasMovedHere(ctx, where, task)
	}
	switch {
	case err != nil:
	case isHere:
		state = internalv1.MoveStatePlaced
	case asks: // There is one way from here, whatever is asked for: the object may be of an older backup.
		if err = m.put(ctx, where, task); err == nil {
			state = internalv1.MoveStatePlaced
		}
	case task.Step == internalv1.MoveCopying:
		if task.IsSuspended() {
			report := c.report(task, state)
			report.Message = "suspended (spec.moves.execution of the FileServer)"
			return report, 0
		}
		if err = m.onePass(ctx, where, task, c); err == nil && c.caughtUp {
			state = internalv1.MoveStateCaughtUp
		}
		again = max(m.limits.pass, c.took)
	case task.Step == internalv1.MoveFreezing:
		if err = m.verify(ctx, where, task, c); err == nil {
			state = internalv1.MoveStateVerified
		}
	case task.Step == internalv1.MoveThawing: // The copy goes on when the source does.
		if j == nil {
			err = m.tellNothing(ctx, where, task)
		}
	case task.Step == internalv1.MovePlacing || task.Step == internalv1.MoveLeaving:
		if err = m.put(ctx, where, task); err == nil {
			state = internalv1.MoveStatePlaced
		}
	}
	report := c.report(task, state)
	if task.Step == internalv1.MoveCopying && state == internalv1.MoveStateCopying && c.took > m.limits.short {
		report.Message = fmt.Sprintf("the last pass took %s; clients are made to wait for the end when one takes %s at most", c.took.Round(time.Second), m.limits.short)
	}
	var refused *errRefused
	switch {
	case isEnded(err):
		report.State, report.Message = internalv1.MoveStateReleased, cut(err.Error())
		if task.Step != internalv1.MovePlacing {
			return report, retryAfter // The step that was asked for comes next.
		}
		return report, 0
	case errors.As(err, &refused):
		report.State, report.Message = internalv1.MoveStateRefused, cut(err.Error())
		if refused.noRoom {
			report.Reason = internalv1.MoveNoRoom
		}
		if err := m.giveUp(ctx, where, c); err != nil && ctx.Err() == nil {
			m.Log.Error("removing a copy for which there is no room failed; trying again", "move", task.ID, "err", err)
		}
		return report, time.Minute
	case isNotYet(err):
		report.Message = cut(err.Error())
		return report, notYetAfter
	case err != nil:
		report.Message = cut(err.Error())
		return report, retryAfter
	}
	return report, again
}

// onePass copies what differs. Clients use the directory meanwhile.
func (m *Mover) onePass(ctx context.Context, where place, task *internalv1.MoveTask, c *copying) error {
	if err := m.prepareCopy(ctx, where, task, c); err != nil {
		return err
	}
	if c.attempt != task.Attempt {
		if c.frozen == task.Attempt {
			c.since = 0 // The last freeze took too long. Compare everything again, so that the next one has less to compare.
		}
		c.attempt, c.caughtUp = task.Attempt, false
	}
	if !c.measured {
		if err := m.measureSource(ctx, where, task, c); err != nil {
			return err
		}
	}
	// The second pass compares every byte; what does not change after it is not compared again while clients wait.
	checksum := c.passes > 0 && c.since == 0
	began := time.Now()
	time0, sent, err := m.copy(ctx, pass{task: task.ID, peer: m.dialer(task), to: where.data(), checksum: checksum, megabytes: task.MegabytesPerSecond})
	c.copied += sent
	if err != nil {
		return err
	}
	c.passes++
	if checksum {
		c.since, c.sinceHere = time0, began
	}
	c.took = time.Since(began)
	c.caughtUp = c.since != 0 && !checksum && c.took <= m.limits.short
	return nil
}

// prepareCopy makes the place for the copy.
func (m *Mover) prepareCopy(ctx context.Context, where place, task *internalv1.MoveTask, c *copying) error {
	j, err := where.read()
	if err != nil {
		return err
	}
	if j != nil && j.isSource() {
		return fmt.Errorf("the move's ID %s is that of another move of this data server", j.ID)
	}
	if j != nil && j.isPlacing() {
		return fmt.Errorf("%w: the copy is %s, and this task is older than that", errNotYet, j.Stage)
	}
	if there, err := exists(where.shown()); err != nil {
		return err
	} else if there {
		return m.refuseTwo(ctx, where, task)
	}
	if j != nil && j.Syncing {
		return m.copyAgain(ctx, where, j, c)
	}
	if j == nil || j.Stage != stageCopying {
		m.about("copy")
		if err := where.write(&journal{ID: where.id, Share: where.share, Path: where.path, Volume: where.volume, Stage: stageCopying}); err != nil {
			return err
		}
	}
	if err := where.makeData(); err != nil {
		return fmt.Errorf("making the place for the copy: %w", err)
	}
	return nil
}

// hasMovedHere tells whether this data server has the directory by a move that is over, and whose record both have removed: the object is of an older backup.
func (m *Mover) hasMovedHere(ctx context.Context, where place, task *internalv1.MoveTask) (bool, error) {
	if there, err := exists(where.shown()); err != nil || !there {
		return false, err
	}
	conn, _, _, err := m.askSource(ctx, m.dialer(task), ask{Move: task.ID, Kind: askMeasure})
	switch {
	case err == nil:
		_ = conn.Close()
		return false, nil
	case errors.Is(err, errAbsent):
		return true, nil
	}
	return false, err
}

// refuseTwo refuses a directory of whose name the target has one, if the source has it, too. Otherwise the target may have it by this very move, and the object
// is of an older backup than the move's end, which the target has forgotten: the source says so.
func (m *Mover) refuseTwo(ctx context.Context, where place, task *internalv1.MoveTask) error {
	conn, _, _, err := m.askSource(ctx, m.dialer(task), ask{Move: task.ID, Kind: askMeasure})
	if err != nil {
		return err
	}
	_ = conn.Close()
	return &errRefused{why: fmt.Sprintf("the target has a directory %q of the share already, on volume %d", where.path, where.volume)}
}

// measureSource asks how large the directory is, and refuses it if there is no room.
func (m *Mover) measureSource(ctx context.Context, where place, task *internalv1.MoveTask, c *copying) error {
	conn, _, head, err := m.askSource(ctx, m.dialer(task), ask{Move: task.ID, Kind: askMeasure})
	if err != nil {
		return err
	}
	_ = conn.Close()
	var volume unix.Statfs_t
	if err := unix.Statfs(where.data(), &volume); err != nil {
		return fmt.Errorf("measuring the target's volume: %w", err)
	}
	have, _, err := measure(where.data())
	if err != nil {
		return err
	}
	c.bytes, c.files, c.sized = head.Bytes, head.Files, true
	free, total := int64(volume.Bavail)*volume.Bsize, int64(volume.Blocks)*volume.Bsize
	if err := fits(head.Bytes, have, free, total, head.Files, int64(volume.Ffree), int64(volume.Files)); err != nil {
		return err
	}
	c.measured = true
	return nil
}

// fits tells whether the rest of a directory of that many bytes has room on a volume. have is what was copied before.
func fits(bytes, have, free, total, files, freeFiles, totalFiles int64) error {
	if needed := max(0, bytes-have) + total/spareOfVolume; needed > free {
		return &errRefused{noRoom: true, why: fmt.Sprintf("the target's volume has %d MB free, and %d MB are needed: %d MB of the directory are to be copied, and 1/%d of the volume stays free",
			free/1e6, needed/1e6, max(0, bytes-have)/1e6, spareOfVolume)}
	}
	if totalFiles > 0 && have == 0 && files > freeFiles {
		return &errRefused{noRoom: true, why: fmt.Sprintf("the target's volume has room for %d files, and the directory has %d", freeFiles, files)}
	}
	return nil
}

// verify copies the rest of a frozen directory, and compares the copy with it.
func (m *Mover) verify(ctx context.Context, where place, task *internalv1.MoveTask, c *copying) error {
	j, err := where.read()
	switch {
	case err != nil:
		return err
	case j == nil:
		return errors.New("there is no copy: it was removed")
	case j.Stage == stageVerified && j.Attempt == task.Attempt:
		return nil
	case j.Stage == stageVerified, j.Stage == stageCopying:
	default:
		return fmt.Errorf("the copy is %s", j.Stage)
	}
	if j.Syncing {
		if err := m.copyAgain(ctx, where, j, c); err != nil {
			return err
		}
	}
	conn, _, head, err := m.askSource(ctx, m.dialer(task), ask{Move: task.ID, Kind: askFreeze, Attempt: task.Attempt})
	if err != nil {
		return err
	}
	_ = conn.Close()
	c.frozen = task.Attempt
	if hasGoneBack(c.since, head.Time, time.Since(c.sinceHere)) {
		c.since = 0 // Times of change don't say what changed.
	}
	p := pass{task: task.ID, peer: m.dialer(task), to: where.data(), attempt: task.Attempt, freeze: head.Freeze}
	_, sent, err := m.copy(ctx, p)
	c.copied += sent
	if err != nil {
		return err
	}
	c.passes++
	if err = m.compare(ctx, where, p, c.since); err != nil && !isNotYet(err) {
		// A file can have changed within the time and the size that it had.
		m.Log.Warn("the copy of a frozen directory differs; comparing every byte", "share", where.share, "path", where.path, "err", err)
		p.checksum = true
		if _, sent, err = m.copy(ctx, p); err == nil {
			c.copied += sent
			err = m.compare(ctx, where, p, c.since)
		}
	}
	if err != nil {
		return err
	}
	j.Stage, j.Syncing = stageCopying, true
	m.about("sync")
	if err := where.write(j); err != nil {
		return err
	}
	if err := m.sync(where.data()); err != nil {
		return errors.Join(err, m.copyAgain(ctx, where, j, c))
	}
	j.Stage, j.Attempt, j.Freeze, j.Parents, j.Syncing = stageVerified, task.Attempt, head.Freeze, head.Parents, false
	m.about("verified")
	return where.write(j)
}

// hasGoneBack tells whether the source's clock shows less time between two moments than went by.
func hasGoneBack(since, now int64, elapsed time.Duration) bool {
	return since != 0 && time.Duration(now-since) < elapsed-clockMargin
}

// compare compares the copy with the frozen directory: every file's attributes, and the bytes of those that changed since.
func (m *Mover) compare(ctx context.Context, where place, p pass, since int64) error {
	conn, answer, _, err := m.askSource(ctx, p.peer, ask{Move: p.task, Kind: askManifest, Attempt: p.attempt, Freeze: p.freeze, Since: since})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return compareManifest(answer, where.data())
}

// copyAgain throws the copy away. After an error of the volume a file can be right as long as it is in memory, and be wrong on the disk: it compares well, and
// the next sync reports nothing.
func (m *Mover) copyAgain(ctx context.Context, where place, j *journal, c *copying) error {
	m.Log.Warn("it is not certain that the copy of a directory is on the disk: it is copied again", "share", where.share, "path", where.path)
	m.about("copy again")
	if err := where.remove(ctx, where.data()); err != nil {
		return fmt.Errorf("removing a copy that may not be on the disk: %w", err)
	}
	c.passes, c.since, c.measured, c.caughtUp = 0, 0, false, false
	if err := where.makeData(); err != nil {
		return fmt.Errorf("making the place for the copy: %w", err)
	}
	j.Stage, j.Syncing = stageCopying, false
	return where.write(j)
}

// giveUp removes what was copied of a directory that is refused: clients of the target's other directories need the room, and it may never be enough.
func (m *Mover) giveUp(ctx context.Context, where place, c *copying) error {
	c.measured = false
	j, err := where.read()
	if err != nil || j == nil || j.Stage != stageCopying {
		return err
	}
	m.about("give back")
	c.passes, c.since, c.caughtUp = 0, 0, false
	return where.remove(ctx, where.data())
}

// syncVolume makes everything on a volume durable: the source's directory is removed after this.
func syncVolume(path string) error {
	volume, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = volume.Close() }()
	if err := unix.Syncfs(int(volume.Fd())); err != nil {
		return fmt.Errorf("making the copy durable: %w", err)
	}
	return nil
}

func (m *Mover) dialer(task *internalv1.MoveTask) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return m.Dial(ctx, task.Peer.Name, task.PeerAddress) }
}
