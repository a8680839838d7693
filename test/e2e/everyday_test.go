package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// everyday copies a tree in, in several ways, and compares what there is with the original: names, contents,
// owners, modes, and times. make test-kernels does this with many more tools, on more kernels.
const everyday = `set -e
tree=/tmp/tree; rm -rf $tree; mkdir -p $tree/one/sub $tree/two $tree/empty
echo data > $tree/one/sub/file; ln -s sub/file $tree/one/link; echo secret > $tree/two/secret
chmod 600 $tree/two/secret; chmod 750 $tree/two; chown 1000:1000 $tree/two $tree/two/secret $tree/empty
find $tree -depth -exec touch -h -d '2001-02-03 04:05:06' {} +
listing() {
  ls -AR "$1" > /dev/null # What is not entered shows nothing of itself.
  (cd "$1"; find . -type l -printf '%P %y %l\n' -o -printf '%P %y %m %U:%G %T+\n' | sort; cat one/sub/file two/secret)
}
listing $tree > /tmp/want
mkdir /share/everyday; cd /share/everyday
mkdir fresh; cp /etc/passwd fresh/; cmp /etc/passwd fresh/passwd
mkdir linked; ln -s /etc/passwd linked/; test "$(readlink linked/passwd)" = /etc/passwd
install -D -m 640 /etc/passwd installed/passwd; test "$(stat -c %a installed/passwd)" = 640
cp -a $tree /share/copied; listing /share/copied | diff /tmp/want -
cp -a $tree copied; listing copied | diff /tmp/want -
mkdir unpacked; tar -C $tree -cf - . | tar -C unpacked -xpf -; listing unpacked | diff /tmp/want -
ls -la /share/copied > /dev/null; chmod -R g+w copied; chown -R 2000:2000 copied
test "$(find copied ! -user 2000 -o ! -group 2000 | wc -l)" = 0
echo as on a local disk`

var _ = Describe("Everyday tools in a pod", Label("everyday"), func() {
	It("copy trees into a share as onto a local disk", func(ctx SpecContext) {
		Expect(shell(ctx, clientA, "%s", everyday)).To(Equal("as on a local disk\n"))
	}, SpecTimeout(bound(time.Minute)))
})
