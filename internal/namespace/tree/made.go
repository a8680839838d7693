package tree

import (
	"path"
	"time"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
)

// Made shows a directory that this server has made, although its ShareDirectory does not say yet that it is Ready.
func (t *Tree) Made(o *internalv1.ShareDirectory) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.directories[o.Spec.FileShareRef.Name][o.Spec.Path]
	if before == nil || before.UID != string(o.UID) || before.State != internalv1.DirectoryCreating {
		return // It is gone, or another server has finished it.
	}
	r := *before
	r.State, r.made = internalv1.DirectoryReady, true
	t.directories[r.Share][r.Path] = &r
	if s := t.mounted[r.Share]; s != nil {
		t.place(s, &r)
	}
}

// keepMade goes on showing a directory of which something else was changed before it became Ready.
func (r *Directory) keepMade(before *Directory) {
	if before.made && before.UID == r.UID && r.State == internalv1.DirectoryCreating {
		r.State, r.made = internalv1.DirectoryReady, true
	}
}

// NewestUnfinished is when the newest directory right in a directory was made, or came by a rename, that is not shown yet. The zero time: there is none.
func (t *Tree) NewestUnfinished(dir *Entry) time.Time {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var newest time.Time
	if dir.Share == nil {
		return newest
	}
	for rel, r := range t.directories[dir.Share.Name] {
		unfinished := r.State == internalv1.DirectoryCreating || r.State == internalv1.DirectoryRenaming
		if unfinished && path.Dir("/"+rel) == path.Clean("/"+dir.Rel) && r.Created.After(newest) {
			newest = r.Created
		}
	}
	return newest
}
