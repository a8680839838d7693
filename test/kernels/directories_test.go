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
	"mv -T replaces an empty directory": `mkdir -p $D/a $D.2; mv -T $D $D.2; test -d $D.2/a; mkdir $D; ! mv -T $D $D.2; rmdir $D`,
	"a time does not go back":           `mkdir -p $D/a; sleep 1.1; mkdir $D/b; t=$(stat -c %Y $D); sleep 1.1; rmdir $D/b; sleep 2.5; test $(stat -c %Y $D) -gt $t`,
	"the root of the share":             `chmod 1777 .; test $(stat -c %a .) = 1777; touch -d '2001-02-03 04:05:06' .; test $(stat -c %Y .) = 981173106; chmod 755 .`,
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
