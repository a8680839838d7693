package kernels

// Linux removes and renames no directory that something is mounted on, and a distributed directory that was entered is one.
const busy = "Device or resource busy"

// busyInShares excuses what removes or renames distributed directories that were entered.
func busyInShares(code int) map[string]excuse {
	e := excuse{code, busy}
	return map[string]excuse{"in a share of depth 1": e, "in a share of depth 2": e, "from one to another": e}
}

// tools are the everyday commands. docs/use/everyday.md has the same list for users.
var tools = []tool{
	{name: "cp -r", command: "cp -r $S $out"},
	{name: "cp -a", command: "cp -a $S $out", times: true},
	{name: "rsync -a", command: "rsync -a $S/ $out", times: true},
	{name: "rsync -a again", prepare: "rsync -a $S/ $out || true", command: "rsync -ai $S/ $out", times: true},
	{
		name:    "rsync -a --delete",
		prepare: "cp -r $S $out; mkdir -p $out/more/sub; touch $out/more/file $out/one/more",
		command: "rsync -a --delete $S/ $out",
		times:   true,
		excused: map[string]excuse{"in a share of depth 2": {23, busy}},
	},
	{name: "tar", command: "mkdir $out && tar -C $S -cf - . | tar -C $out -xpf -", times: true},
	{
		name:    "unzip",
		prepare: "(cd $S && zip -qry /tmp/source.zip .)",
		command: "unzip -q /tmp/source.zip -d $out; rm /tmp/source.zip",
	},
	{
		name: "git clone and checkout",
		prepare: "rm -rf /tmp/repo; cp -r $S /tmp/repo; cd /tmp/repo; git init -qb main; git add -A; git commit -qm one; " +
			"git checkout -qb other; git mv one three; git commit -qm two; git checkout -q main",
		command: "mkdir $out; git clone -q /tmp/repo $out/repo && cd $out/repo && git checkout -q other && git checkout -q main && git fsck",
	},
	{
		name:    "mv in from elsewhere",
		prepare: "rm -rf /tmp/moved; cp -a $S /tmp/moved",
		command: "mv /tmp/moved $out",
		times:   true,
	},
	{
		name:    "mv out to elsewhere",
		prepare: "cp -r $S $out; rm -rf /tmp/moved",
		command: "mv $out /tmp/moved; listing /tmp/moved",
		excused: busyInShares(1),
	},
	{name: "mv of a directory", prepare: "mkdir $out.old; mkdir -p $out.old/a; mkdir -p $out.old/a/b", command: "mv $out.old $out", excused: map[string]excuse{
		"in a share of depth 1": {1, busy}, "from one to another": {1, busy},
	}},
	{name: "mv of a directory below", prepare: "cp -r $S $out", command: "mv $out/one/sub $out/two/sub"},
	{name: "rm -rf", prepare: "cp -r $S $out", command: "rm -rf $out", excused: busyInShares(1)},
	{
		name:    "rm -rf of what is not entered",
		prepare: "mkdir $out; mkdir $out/a",
		command: "rm -rf $out",
		excused: busyInShares(1),
	},
	{name: "find -delete", prepare: "cp -r $S $out", command: "find $out -delete", excused: busyInShares(1)},
	{name: "du", prepare: "cp -r $S $out", command: "test $(du -s --apparent-size $out | cut -f1) -ge 170"},
	{name: "df", prepare: "mkdir $out", command: "df $out"},
	{name: "chmod -R", prepare: "cp -r $S $out", command: "chmod -R u=rwX,g=rX,o= $out"},
	{name: "chown -R", prepare: "cp -r $S $out", command: "chown -R 1234:1234 $out"},
	{
		name:    "chown to many ids",
		prepare: "mkdir -p $out/a; touch $out/a/f",
		command: "for i in $(seq 2000 2019); do touch $out/a/$i; chown $i:$i $out/a/$i; done",
	},
	{name: "install -D", command: "install -D -m 640 /etc/passwd $out/a/b/passwd"},
	{
		name:    "python copytree",
		command: `python3 -c "import shutil, os; shutil.copytree(os.environ['S'], os.environ['out'], symlinks=True)"`,
		times:   true,
	},
	{
		name: "python rmtree",
		// All are entered: what python says of others is a matter of how long ago they were made.
		prepare: "cp -r $S $out; find $out > /dev/null",
		command: `python3 -c "import shutil, os; shutil.rmtree(os.environ['out'])"`,
		excused: busyInShares(1),
	},
	{name: "python tempfile", prepare: "mkdir -p $out/a/b", command: `python3 -c "
import tempfile, os
d = os.environ['out'] + '/a/b'
with tempfile.TemporaryDirectory(dir=d) as t, tempfile.NamedTemporaryFile(dir=t) as f, tempfile.TemporaryFile(dir=d) as g:
    f.write(b'x'); f.flush(); g.write(b'y'); assert os.path.getsize(f.name) == 1
"`},
	{
		name:    "touch and rename over",
		prepare: "mkdir -p $out/a/b",
		command: "cd $out/a/b; touch f; echo new > .f.tmp; mv .f.tmp f; touch -d 2001-01-01 f; " +
			"test $(cat f) = new; cp f f~; sed -i s/new/newer/ f; rm f~",
	},
	{
		name:    "new folder, renamed",
		prepare: "mkdir -p $out",
		command: "cd $out; mkdir 'New folder'; mv 'New folder' things; mkdir things/x; touch things/x/y",
	},
	{
		name:    "mkdir -m and chmod",
		command: "mkdir -m 700 $out; mkdir -m 2770 $out/a; chmod 755 $out; chmod 1777 $out/a; chown 7:8 $out/a",
		times:   false,
	},
	{name: "touch -d of a new directory", command: "mkdir -p $out/a; touch -d 2001-01-01 $out/a $out", times: true},
	{
		name:    "ln -s and ln",
		prepare: "cp -r $S $out",
		command: "ln -s file1 $out/one/soft; ln $out/one/file1 $out/one/hard; test $(stat -c %h $out/one/file1) = 2",
	},
	{
		name:    "flock",
		prepare: "mkdir -p $out/a; touch $out/a/lock",
		command: "flock $out/a/lock sh -c '! flock -n $out/a/lock true'",
	},
	{
		name:    "append from two",
		prepare: "mkdir -p $out/a; ls $out/a",
		command: "(for i in $(seq 50); do echo a >> $out/a/1; done) & (for i in $(seq 50); do echo b >> $out/a/2; done) & wait; " +
			"cat $out/a/1 $out/a/2 | wc -l | grep -qx 100",
	},
}
