package consistency

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const limit = 30 * time.Second

// at makes an operation that took place between two seconds.
func at(client, call, back int, r Request, a Answer) Operation {
	return Operation{Client: client, Request: r, Answer: a, Call: time.Duration(call) * time.Second, Return: time.Duration(back) * time.Second}
}

func repeated(o Operation) Operation {
	o.Repeated = true
	return o
}

func twice(o Operation) Operation {
	o.Twice = true
	return o
}

var (
	makeP   = Request{Kind: Mkdir, Path: "p"}
	removeP = Request{Kind: Rmdir, Path: "p"}
	makeX   = Request{Kind: Mkdir, Path: "p/x"}
	removeX = Request{Kind: Rmdir, Path: "p/x"}
	statX   = Request{Kind: Stat, Path: "p/x"}
	moveX   = Request{Kind: Rename, Path: "p/x", To: "q/y"}
	listP   = Request{Kind: List, Path: "p"}
	listQ   = Request{Kind: List, Path: "q"}
	missing = Answer{Error: Missing}
	exists  = Answer{Error: Exists}
)

func names(names ...string) Answer { return Answer{Names: names} }

func TestHistoriesOfDirectories(t *testing.T) {
	stale := Promise{Stale: 2 * time.Second}
	refusals := Promise{Stale: 2 * time.Second, Refusals: true}
	aliases := refusals
	aliases.Aliases = true
	stales := Answer{Error: StaleHandle}
	for _, test := range []struct {
		name    string
		history History
		promise Promise
		// wrong is a part of the text of the violation; "": there is none.
		wrong string
	}{
		{"one after the other", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, statX, Answer{}), at(0, 4, 5, removeX, Answer{}), at(1, 6, 7, statX, missing)}, Promise{}, ""},
		{"at the same time, in any order", History{at(0, 0, 5, makeX, Answer{}), at(1, 1, 2, statX, missing), at(2, 3, 4, statX, Answer{})}, Promise{}, ""},
		{"at the same time, and back again", History{at(0, 0, 5, makeX, Answer{}), at(1, 1, 2, statX, Answer{}), at(2, 3, 4, statX, missing)}, Promise{}, "stat p/x: ENOENT"},
		{"made and not found", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, statX, missing)}, Promise{}, "stat p/x: ENOENT"},
		{"made twice", History{at(0, 0, 2, makeX, Answer{}), at(1, 1, 3, makeX, Answer{})}, Promise{}, "mkdir p/x: done"},
		{"two made it, one got EEXIST", History{at(0, 0, 2, makeX, Answer{}), at(1, 1, 3, makeX, exists)}, Promise{}, ""},
		{"removed and still there", History{at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, removeX, Answer{}), at(1, 4, 5, makeX, exists)}, Promise{}, "mkdir p/x: EEXIST"},
		{"renamed, and under no name for a moment", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 9, moveX, Answer{}), at(1, 3, 4, listP, names()), at(1, 5, 6, listQ, names()),
		}, Promise{}, "list q: []"},
		{"renamed, and under both names for a moment", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 9, moveX, Answer{}), at(1, 3, 4, listQ, names("y")), at(1, 5, 6, listP, names("x")),
		}, Promise{}, "list p: [x]"},
		{"a rename that was refused and has replaced its target", History{
			at(0, 0, 1, Request{Kind: Mkdir, Path: "q/y"}, Answer{}), at(0, 2, 3, moveX, missing), at(1, 4, 5, listQ, names()),
		}, Promise{}, "list q: []"},
		{"a directory in a removed one", History{
			at(0, 0, 1, Request{Kind: Rmdir, Path: "p"}, Answer{}), at(1, 2, 3, makeX, Answer{}),
		}, Promise{}, "mkdir p/x: done"},
		{"no answer: done later", History{at(0, 0, 1, makeX, Answer{}).Opened(), at(1, 2, 3, statX, missing), at(1, 4, 5, statX, Answer{})}, Promise{}, ""},
		{"no answer: never done", History{at(0, 0, 1, makeX, Answer{}).Opened(), at(1, 4, 5, statX, missing)}, Promise{}, ""},
		{"no answer: done, and undone", History{
			at(0, 0, 1, makeX, Answer{}).Opened(), at(1, 2, 3, statX, Answer{}), at(1, 4, 5, statX, missing),
		}, Promise{}, "stat p/x: ENOENT"},
		{"sent again: its own doing", History{repeated(at(0, 0, 3, makeX, exists)), at(1, 4, 5, statX, Answer{})}, Promise{}, ""},
		{"not sent again, and its own doing", History{at(0, 0, 3, makeX, exists), at(1, 4, 5, statX, Answer{})}, Promise{}, "mkdir p/x: EEXIST"},
		{"sent again: done twice", History{
			at(0, 0, 1, makeX, Answer{}), repeated(at(0, 2, 9, removeX, Answer{})), at(1, 3, 4, makeX, Answer{}), at(1, 10, 11, statX, missing),
		}, Promise{}, ""},
		{"a little old", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, statX, missing)}, stale, ""},
		{"too old", History{at(0, 0, 1, makeX, Answer{}), at(1, 4, 5, statX, missing)}, stale, "stat p/x: ENOENT"},
		{"older than its own change", History{at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, statX, missing)}, stale, "stat p/x: ENOENT"},
		{"a listing that has its own change, and not an older one of another client", History{
			at(1, 0, 1, makeX, Answer{}), at(0, 1, 2, Request{Kind: Mkdir, Path: "p/y"}, Answer{}), at(0, 3, 3, listP, names("y")),
		}, stale, ""},
		{"the same where listings may not be old", History{
			at(1, 0, 1, makeX, Answer{}), at(0, 2, 3, Request{Kind: Mkdir, Path: "p/y"}, Answer{}), at(0, 4, 5, listP, names("y")),
		}, Promise{}, "list p: [y]"},
		{"a listing without its own change", History{at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, listP, names())}, stale, "list p: []"},
		{"a name that was not made", History{at(0, 2, 3, listP, names("z"))}, stale, "list p: [z]"},
		{
			"old, as its server did not learn of changes",
			History{at(0, 0, 1, makeX, Answer{}), at(1, 9, 10, statX, missing)},
			Promise{Behind: []Window{{From: 0, Until: 9 * time.Second}}},
			"",
		},
		{
			"old, later than that",
			History{at(0, 0, 1, makeX, Answer{}), at(1, 9, 10, statX, missing)},
			Promise{Behind: []Window{{From: 0, Until: 8 * time.Second}}},
			"stat p/x: ENOENT",
		},
		{"a refusal that is a little old", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, removeX, missing)}, refusals, ""},
		{"the same where refusals may not be", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, removeX, missing)}, stale, "rmdir p/x: ENOENT"},
		{"a refusal that is too old", History{at(0, 0, 1, makeX, Answer{}), at(1, 4, 5, removeX, missing)}, refusals, "rmdir p/x: ENOENT"},
		{"a rename whose source its Linux knows by an older name", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, moveX, Answer{}), at(1, 4, 5, Request{Kind: Rename, Path: "q/y", To: "p/z"}, stales),
		}, aliases, ""},
		{"a look at what its Linux knows by an older name", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, moveX, Answer{}), at(1, 4, 5, Request{Kind: Stat, Path: "q/y"}, stales),
		}, aliases, ""},
		{"the same of what has the name that it was made with", History{at(0, 0, 1, makeX, Answer{}), at(1, 4, 5, moveX, stales)}, aliases, "rename p/x → q/y: ESTALE"},
		{"the same by a client that is no Linux", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, moveX, Answer{}), at(1, 4, 5, Request{Kind: Rename, Path: "q/y", To: "p/z"}, stales),
		}, refusals, "rename q/y → p/z: ESTALE"},
		{"a directory above that was removed twice meanwhile", History{
			at(0, 0, 2, removeP, Answer{}), at(0, 3, 4, makeP, Answer{}), at(0, 5, 6, removeP, Answer{}), at(1, 1, 7, makeX, stales),
		}, Promise{Refusals: true, Stale: 2 * time.Second, TwoWalks: true}, ""},
		{"one that was removed once", History{
			at(0, 0, 2, removeP, Answer{}), at(0, 3, 4, makeP, Answer{}), at(0, 8, 9, removeP, Answer{}), at(1, 1, 7, makeX, stales),
		}, Promise{Refusals: true, Stale: 2 * time.Second, TwoWalks: true}, "mkdir p/x: ESTALE"},
		{"one whose removal was refused", History{
			at(0, 0, 2, removeP, Answer{}), at(0, 3, 4, makeP, Answer{}), at(0, 5, 6, removeP, Answer{Error: NotEmpty}), at(1, 1, 7, makeX, stales),
		}, Promise{Refusals: true, Stale: 8 * time.Second, TwoWalks: true}, "mkdir p/x: ESTALE"},
		{"the same twice, by a client that is no Linux", History{
			at(0, 0, 2, removeP, Answer{}), at(0, 3, 4, makeP, Answer{}), at(0, 5, 6, removeP, Answer{}), at(1, 1, 7, makeX, stales),
		}, refusals, "mkdir p/x: ESTALE"},
		{"a refusal that nothing explains", History{at(1, 4, 5, makeX, Answer{Error: "EIO"})}, refusals, "mkdir p/x: EIO"},
		{"not empty a little ago", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, removeX, Answer{}), at(1, 4, 5, Request{Kind: Rmdir, Path: "p"}, Answer{Error: NotEmpty}),
		}, refusals, ""},
		{"not empty long ago", History{
			at(0, 0, 1, makeX, Answer{}), at(0, 2, 3, removeX, Answer{}), at(1, 9, 10, Request{Kind: Rmdir, Path: "p"}, Answer{Error: NotEmpty}),
		}, refusals, "rmdir p: ENOTEMPTY"},
		{"changed by another one at the same time", History{
			at(0, 0, 4, makeX, Answer{}), at(1, 1, 3, removeX, Answer{}), at(0, 5, 5, statX, Answer{}),
		}, stale, ""},
		{"a removal that found what it did itself", History{
			at(0, 0, 1, makeX, Answer{}), twice(at(1, 2, 5, removeX, missing)), at(0, 6, 7, makeX, Answer{}),
		}, Promise{}, ""},
		{"a removal that found what it did itself, seen by a look", History{
			at(0, 0, 1, makeX, Answer{}), twice(at(1, 9, 12, removeX, missing)), at(0, 20, 21, statX, missing), at(0, 20, 21, makeX, Answer{}),
		}, stale, ""},
		{"a mkdir that found the name, after another one removed its own and made it again", History{
			twice(at(0, 0, 9, makeX, exists)), at(1, 2, 3, removeX, Answer{}), at(1, 4, 5, makeX, Answer{}),
		}, Promise{}, ""},
		{"such a removal, long before", History{
			twice(at(1, 0, 1, removeX, missing)), at(0, 2, 3, makeX, Answer{}), at(0, 4, 5, makeX, Answer{}),
		}, Promise{}, "mkdir p/x: done"},
		{"a mkdir that was made again, after another one removed its own", History{
			twice(at(0, 0, 9, makeX, Answer{})), at(1, 2, 3, removeX, Answer{}), at(1, 10, 11, statX, Answer{}),
		}, Promise{}, ""},
		{"no change is made three times", History{
			at(0, 0, 1, makeX, Answer{}), twice(at(1, 2, 9, removeX, Answer{})), at(0, 3, 4, makeX, Answer{}), at(0, 5, 6, makeX, Answer{}), at(0, 7, 8, makeX, Answer{}),
		}, Promise{}, "mkdir p/x: done"},
		{"such a removal whose directory's path was gone, too", History{
			at(0, 0, 1, makeX, Answer{}), twice(at(1, 2, 9, removeX, Answer{Error: Missing, Looked: true})), at(0, 10, 11, Request{Kind: Rmdir, Path: "p"}, Answer{}),
		}, stale, ""},
		{"such a mkdir that was never made", History{
			at(0, 0, 1, Request{Kind: Mkdir, Path: "g"}, Answer{}), twice(at(1, 2, 3, Request{Kind: Mkdir, Path: "g/x"}, Answer{Error: Missing, Looked: true})),
			at(0, 4, 5, Request{Kind: Rmdir, Path: "g/x"}, missing),
		}, stale, ""},
		{"a success is never old", History{at(0, 0, 1, makeX, Answer{}), at(1, 2, 3, makeX, Answer{})}, refusals, "mkdir p/x: done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Tree(test.history, []string{"p", "q"}, test.promise, limit)
			expect(t, &v, test.wrong)
		})
	}
}

func expect(t *testing.T, v *Verdict, wrong string) {
	t.Helper()
	text := strings.Join(v.Violations, "\n")
	if len(v.Undecided) > 0 || (text == "") != (wrong == "") || !strings.Contains(text, wrong) {
		t.Errorf("found %q, undecided %q, want %q", text, v.Undecided, wrong)
	}
}

func TestWhatMayHaveBeenRepeatedIsMarked(t *testing.T) {
	here := at(0, 10, 12, makeX, Answer{})
	here.Server = "a"
	for name, test := range map[string]struct {
		marked History
		want   bool
	}{
		"in a window of its server":        {History{here}.RepeatedDuring(Window{"a", 11 * time.Second, 20 * time.Second}), true},
		"in a window of another server":    {History{here}.RepeatedDuring(Window{"b", 11 * time.Second, 20 * time.Second}), false},
		"in a window of any server":        {History{here}.RepeatedDuring(Window{"", 11 * time.Second, 20 * time.Second}), true},
		"before it":                        {History{here}.RepeatedDuring(Window{"a", 13 * time.Second, 20 * time.Second}), false},
		"after it":                         {History{here}.RepeatedDuring(Window{"a", time.Second, 9 * time.Second}), false},
		"a removal that found nothing":     {History{at(0, 10, 12, removeX, missing)}.TwiceDuring(Window{"", 11 * time.Second, 20 * time.Second}), true},
		"a removal, later":                 {History{at(0, 10, 12, removeX, missing)}.TwiceDuring(Window{"", 13 * time.Second, 20 * time.Second}), false},
		"a mkdir that was made":            {History{at(0, 10, 12, makeX, Answer{})}.TwiceDuring(Window{"", 11 * time.Second, 20 * time.Second}), true},
		"a look, in the window":            {History{at(0, 10, 12, statX, Answer{})}.TwiceDuring(Window{"", 11 * time.Second, 20 * time.Second}), false},
		"a change that took long":          {History{here}.RepeatedAfter(time.Second), true},
		"a change that did not take long":  {History{here}.RepeatedAfter(3 * time.Second), false},
		"a look that took long":            {History{at(0, 0, 9, statX, Answer{})}.RepeatedAfter(time.Second), false},
		"a change that was not answered":   {History{here.Opened()}.RepeatedAfter(time.Second), false},
		"without an answer, in the window": {History{here.Opened()}.RepeatedDuring(Window{"a", 15 * time.Second, 20 * time.Second}), true},
	} {
		if got := test.marked[0].Repeated || test.marked[0].Twice; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestHistoriesOfRegisters(t *testing.T) {
	write := func(v string) Request { return Request{Kind: Write, Path: "f", Value: v, Locked: true} }
	swap := func(v string) Request { return Request{Kind: Swap, Path: "f", Value: v, Locked: true} }
	read := Request{Kind: Read, Path: "f", Locked: true}
	got := func(v string) Answer { return Answer{Got: v} }
	for _, test := range []struct {
		name    string
		history History
		wrong   string
	}{
		{"one after the other", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, got("a")), at(1, 4, 5, swap("b"), got("a")), at(0, 6, 7, read, got("b"))}, ""},
		{"a lost write", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, got(""))}, `read f, locked: ""`},
		{"an old value from a cache", History{
			at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, got("a")), at(0, 4, 5, write("b"), Answer{}), at(1, 6, 7, read, got("a")),
		}, `read f, locked: "a"`},
		{"two had the lock", History{at(0, 0, 4, swap("a"), got("")), at(1, 1, 3, swap("b"), got(""))}, `swap f b, locked: ""`},
		{"a write that failed counts or does not", History{
			at(0, 0, 1, write("a"), Answer{Error: "EIO"}), at(1, 2, 3, read, got("")), at(1, 4, 5, read, got("a")),
		}, ""},
		{"a read that failed says nothing", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, Answer{Error: "EIO"})}, ""},
		{"files are apart", History{
			at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, Request{Kind: Read, Path: "g", Locked: true}, got("")),
		}, ""},
		{"without locks it is judged elsewhere", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, Request{Kind: Read, Path: "f"}, got("z"))}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := Registers(test.history, limit)
			expect(t, &v, test.wrong)
		})
	}
}

func TestHistoriesOfFilesWithoutLocks(t *testing.T) {
	write := func(v string) Request { return Request{Kind: Write, Path: "f", Value: v} }
	read := Request{Kind: Read, Path: "f"}
	got := func(v string) Answer { return Answer{Got: v} }
	for _, test := range []struct {
		name    string
		history History
		wrong   string
	}{
		{"what was closed last", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, got("a"))}, ""},
		{"nothing was written", History{at(1, 2, 3, read, got(""))}, ""},
		{"what was closed is not seen", History{at(0, 0, 1, write("a"), Answer{}), at(1, 2, 3, read, got(""))}, "what was there at first"},
		{"an older one", History{at(0, 0, 1, write("a"), Answer{}), at(0, 2, 3, write("b"), Answer{}), at(1, 4, 5, read, got("a"))}, "read an older one"},
		{"opened before the last one was closed", History{at(0, 0, 1, write("a"), Answer{}), at(0, 2, 4, write("b"), Answer{}), at(1, 3, 5, read, got("a"))}, ""},
		{"seen before it was closed", History{at(0, 0, 9, write("a"), Answer{}), at(1, 3, 5, read, got("a"))}, ""},
		{"seen, and then not: a register under locks may not", History{at(0, 0, 9, write("a"), Answer{}), at(1, 3, 5, read, got("a")), at(2, 6, 7, read, got(""))}, ""},
		{"two at the same time, either", History{
			at(0, 0, 5, write("a"), Answer{}), at(1, 1, 4, write("b"), Answer{}), at(2, 6, 7, read, got("a")), at(2, 8, 9, read, got("b")),
		}, ""},
		{"seen before it was written", History{at(1, 0, 1, read, got("a")), at(0, 2, 3, write("a"), Answer{})}, "written later"},
		{"torn", History{at(0, 0, 1, write("aa"), Answer{}), at(1, 2, 3, read, got("ab"))}, "was not written"},
		{"a write that failed may come late", History{
			at(0, 0, 1, write("a"), Answer{Error: "EIO"}), at(0, 2, 3, write("b"), Answer{}), at(1, 4, 5, read, got("a")),
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := CloseToOpen(test.history)
			expect(t, &v, test.wrong)
		})
	}
}

// A wrong answer among many right ones is shown with what explains that it is wrong, and not with all.
func TestTheShortestHistoryIsShown(t *testing.T) {
	var history History
	for i := range 60 {
		history = append(history, at(i%3, 10*i, 10*i+1, statX, missing), at(i%3, 10*i+2, 10*i+3, listP, names()))
	}
	history = append(history, at(0, 601, 602, makeX, Answer{}), at(1, 603, 604, listQ, names()), at(2, 605, 606, statX, missing))
	for i := range 60 {
		history = append(history, at(i%3, 700+10*i, 701+10*i, statX, Answer{}))
	}
	v := Tree(history, []string{"p", "q"}, Promise{}, limit)
	if len(v.Violations) != 1 || !strings.Contains(v.Violations[0], "(2 operations of 183)") {
		t.Fatalf("found %v", v.Violations)
	}
	folder := t.TempDir()
	files, err := v.Draw(folder)
	if err != nil || len(files) != 1 || files[0] != filepath.Join(folder, "tree.html") {
		t.Fatalf("drew %v, %v", files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "p/x") {
		t.Errorf("the drawing does not name p/x: %v", err)
	}
}
