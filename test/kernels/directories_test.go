package kernels

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// directoryCommands are about the directories of the namespace: $D is the name of one that is not there yet, at the first of two
// levels, so that $D/x is on a data server.
var directoryCommands = map[string]string{
	"chmod, chown and touch are kept": `mkdir -p $D/x; chown 1000:100 $D; chmod 2750 $D; touch -d '2001-02-03 04:05:06' $D
test "$(stat -c '%u:%g %a %Y' $D)" = "1000:100 2750 981173106"`,
	"chmod closes it on the data servers, too": `mkdir -p $D/x; touch $D/x/f; chmod 700 $D
! setpriv --reuid 1000 --regid 1000 --clear-groups cat $D/x/f; chmod 755 $D; setpriv --reuid 1000 --regid 1000 --clear-groups cat $D/x/f`,
	"cp -a keeps it all": `mkdir -p /tmp/$D/one/two /tmp/$D/three; cp /etc/passwd /tmp/$D/one/; cp /etc/group /tmp/$D/one/two/; chown -R 1000:100 /tmp/$D/three
chmod 2750 /tmp/$D/one /tmp/$D/three; find /tmp/$D -depth -exec touch -d '2001-02-03 04:05:06' {} +
cp -a /tmp/$D .; ls -R $D > /dev/null
test "$(cd /tmp/$D && find . -printf '%P %y %m %U:%G %T@\n' | sort)" = "$(cd $D && find . -printf '%P %y %m %U:%G %T@\n' | sort)"`,
	"rsync -a has nothing to do a second time": `mkdir -p /tmp/$D/one/two /tmp/$D/three; cp /etc/passwd /tmp/$D/one/; chown -R 1000:100 /tmp/$D/three
find /tmp/$D -depth -exec touch -d '2001-02-03 04:05:06' {} +
rsync -a /tmp/$D .; ls -R $D > /dev/null; test -z "$(rsync -ai /tmp/$D .)"`,
	"tar x ends well": `mkdir -p /tmp/$D/one /tmp/$D/two; cp /etc/passwd /tmp/$D/one/; find /tmp/$D -depth -exec touch -d '2001-02-03 04:05:06' {} +
tar -C /tmp -cf /tmp/$D.tar $D; tar xpf /tmp/$D.tar; ls -R $D > /dev/null
test "$(stat -c %Y $D) $(stat -c %Y $D/one)" = "981173106 981173106"; cmp $D/one/passwd /etc/passwd`,
	"a process goes on in a directory that is renamed": `mkdir $D; cd $D; mkdir a; (cd ..; mv $D $D.2); mkdir b; ls a b; test -d ../$D.2/b; ! test -e ../$D`,
	"a directory is renamed with what is in it": `mkdir -p $D/a $D/b $D/c; for i in a b c; do echo $i > $D/$i/f; done
mv $D $D.2; ! test -e $D; for i in a b c; do test $(cat $D.2/$i/f) = $i; done`,
	"mv -T replaces an empty directory":                            `mkdir -p $D/a $D.2; mv -T $D $D.2; test -d $D.2/a; mkdir $D; ! mv -T $D $D.2; rmdir $D`,
	"a time does not go back":                                      `mkdir -p $D/a; sleep 1.1; mkdir $D/b; t=$(stat -c %Y $D); sleep 1.1; rmdir $D/b; sleep 2.5; test $(stat -c %Y $D) -gt $t`,
	"a directory is not older than a file that was made before it": `mkdir -p $D/x; touch $D/x/f; mkdir $D.2; ! test $D.2 -ot $D/x/f`,
	"a time has nanoseconds": `mkdir $D; touch -d '2001-02-03 04:05:06.123456789' $D
test "$(stat -c %y $D | cut -c 1-29)" = "2001-02-03 04:05:06.123456789"`,
	"a name that is not UTF-8 is missing": `! stat $D$'\xff'; ! mkdir $D$'\xff'; stat $D$'\xff' 2>&1 | grep 'No such file'; mkdir $D$'\xff' 2>&1 | grep 'Invalid argument'
! test -e $D$'\xff'; ls -d $D*$'\xff' 2>&1 | grep 'No such file'`,
	"the root of the share": `chmod 1777 .; test $(stat -c %a .) = 1777; touch -d '2001-02-03 04:05:06' .; test $(stat -c %Y .) = 981173106; chmod 755 .`,
}

// unenteredCommands are about a directory that this client has not entered since it mounted the share. $A and $B are two directories of
// depth 1 with one file each; B belongs to 1000:100 and is of 2020. $V is the same share in another mount.
var unenteredCommands = map[string]string{
	"owner and times are shown": `test "$(stat -c '%u:%g %Y' $B)" = "1000:100 1580702706"; test $(($(date +%s) - $(stat -c %Y $A))) -lt 600
test $(($(date +%s) - $(stat -c %X $A))) -lt 600; test $(($(date +%s) - $(stat -c %Z $A))) -lt 600`,
	"find takes what is old": `test "$(find . -mindepth 1 -maxdepth 1 -name "$N-*" -mtime +30)" = ./$B`,
	"times follow when something changes beside it": `stat -c %Y $B; ls $V/$B/; touch $V/$B/new; mkdir $N-c; sleep 3
test $(($(date +%s) - $(stat -c %Y $B))) -lt 600`,
	"nothing is mounted for it": `ls -la > /dev/null; find . -maxdepth 1 -name "$N-*" -mtime +30; ! grep " $PWD/$N" /proc/mounts`,
	"it is entered":             `stat -c %Y $B; cat $B/f; test "$(stat -c '%u:%g %Y' $B)" = "1000:100 1580702706"`,
}

// testUnentered is about directories that a client looks at and does not enter.
func (w *world) testUnentered(t *testing.T) {
	w.share("unentered", 1, nil)
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		for i, name := range slices.Sorted(maps.Keys(unenteredCommands)) {
			t.Run(name, func(t *testing.T) {
				setup := fmt.Sprintf("set -ex; export TZ=UTC N=u%d-%s; A=$N-a B=$N-b V=/mnt/second; ", i, c.kernel)
				second := "mkdir -p /mnt/second; mount -t nfs4 -o vers=4.1,nosharecache,acdirmin=1,acdirmax=2 " + source(namespaceServers) + ":/unentered /mnt/second; "
				c.must(t, setup+second+`cd $V; mkdir $A $B; touch $A/f $B/f; chown 1000:100 $B; touch -d '2020-02-03 04:05:06' $B`)
				t.Cleanup(func() { c.must(t, "umount -i -l /mnt/second") })
				c.mount(t, "/unentered", "nconnect=2,nosharecache,acdirmin=1,acdirmax=2")
				if r := c.run(t, setup+"cd /mnt/share; "+unenteredCommands[name]); r.code != 0 {
					t.Errorf("ended with %d:\n%s", r.code, r.output)
				}
			})
		}
	})
}

// testDirectories is about what Linux and its tools do with directories of the namespace.
func (w *world) testDirectories(t *testing.T) {
	w.share("levels", 2, nil)
	w.onEveryKernel(t, func(t *testing.T, c *kernelClient) {
		c.mount(t, "/levels", "nconnect=2,acdirmin=1,acdirmax=2")
		for i, name := range slices.Sorted(maps.Keys(directoryCommands)) {
			t.Run(name, func(t *testing.T) {
				command := directoryCommands[name]
				r := c.run(t, fmt.Sprintf("set -ex; cd /mnt/share; export D=n%d-%s; %s", i, c.kernel, command))
				if r.code != 0 {
					t.Errorf("%s\nended with %d:\n%s", command, r.code, r.output)
				}
			})
		}
	})
}
