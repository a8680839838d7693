package supervisor

import "testing"

func TestMountsAreThoseOfTheRoot(t *testing.T) {
	const mounts = `overlay / overlay ro,relatime 0 0
proc /proc proc rw 0 0
/dev/sda1 /etc/hosts ext4 rw 0 0
/dev/loop0 /volumes/0 ext4 rw 0 0
tmpfs /ganesha tmpfs rw 0 0
/dev/loop0 /ganesha/volumes/0 ext4 rw,relatime 0 0
/dev/my\040disk /ganesha/volumes/1 xfs rw 0 0
/dev/sda1 /ganeshas/volumes/2 ext4 rw 0 0
broken /ganesha
`
	const want = `tmpfs / tmpfs rw 0 0
/dev/loop0 /volumes/0 ext4 rw,relatime 0 0
/dev/my\040disk /volumes/1 xfs rw 0 0
`
	if got := mountsBelow("/ganesha", mounts); got != want {
		t.Errorf("%s", got)
	}
}
