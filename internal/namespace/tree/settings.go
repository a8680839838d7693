package tree

import (
	"errors"
	"slices"
	"time"
)

// Settings are attributes that a caller asks to be set; nil: left as they are.
type Settings struct {
	Owner, Group, Mode *uint32
	Access, Modify     *TimeSetting
}

// TimeSetting is a time to be set.
type TimeSetting struct {
	// Now: the server's time. Else Time.
	Now  bool
	Time time.Time
}

// Permissions tells whether owner, group or mode are among the settings.
func (s *Settings) Permissions() bool { return s.Owner != nil || s.Group != nil || s.Mode != nil }

// Times tells whether a time is.
func (s *Settings) Times() bool { return s.Access != nil || s.Modify != nil }

var (
	// ErrNotOwner is that only the owner, or only uid 0, may do what was asked for (EPERM).
	ErrNotOwner = errors.New("not the owner")
	// ErrNoPermission is that it takes write permission (EACCES).
	ErrNoPermission = errors.New("no permission")
)

// Allow gives what is to be set if the caller may set what it asks for, as chmod(2), chown(2) and utimensat(2) have it:
// the owner changes mode and times, uid 0 alone the owner, the group only to one that the owner is in; whoever may write
// may set times to now. A setgid bit that the caller may not give is left out, not refused.
func (e *Entry) Allow(c Credentials, s Settings) (Settings, error) {
	root, owner := c.UID == 0, c.UID == e.Owner
	in := func(group uint32) bool { return c.GID == group || slices.Contains(c.Groups, group) }
	if s.Owner != nil && !root && (!owner || *s.Owner != e.Owner) {
		return s, ErrNotOwner
	}
	if s.Group != nil && !root && (!owner || *s.Group != e.Group && !in(*s.Group)) {
		return s, ErrNotOwner
	}
	if s.Mode != nil {
		if !root && !owner {
			return s, ErrNotOwner
		}
		group := e.Group
		if s.Group != nil {
			group = *s.Group
		}
		if mode := *s.Mode; !root && !in(group) {
			const setgid = 0o2000
			mode &^= setgid
			s.Mode = &mode
		}
	}
	for _, t := range []*TimeSetting{s.Access, s.Modify} {
		switch {
		case t == nil || root || owner:
		case !t.Now:
			return s, ErrNotOwner
		case e.Permitted(c)&Write == 0:
			return s, ErrNoPermission
		}
	}
	return s, nil
}
