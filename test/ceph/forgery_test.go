package ceph

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"time"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
	"github.com/howdah/howdah/internal/nfs4/client"
	"github.com/howdah/howdah/internal/nfs4/peertest"
)

// An unsigned FSAL_CEPH handle has: 43, flags, export ID (2 bytes, big endian), length, and then, in little endian,
// inode, snapshot and file system.
const (
	exportAt, inodeAt, snapshotAt, filesystemAt = 2, 5, 13, 21
	bareBytes, signedBytes                      = 29, 37
	inMainTree                                  = ^uint64(1) // The snapshot ID of live files (CEPH_NOSNAP).
	snapshotDirectory                           = ^uint64(0)
)

const handleKey = "sixteen bytes..."

// ganeshaOf returns a ganesha configuration with two exports, each with its own account.
func ganeshaOf(shares ...subvolume) string {
	text := `NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true;
  Allow_Set_Io_Flusher_Fail = true; fsid_override = true; Enable_Metrics = false; }
NFSv4 { Minor_Versions = 1; Graceless = true; RecoveryBackend = fs_ng; RecoveryRoot = "/tmp"; Only_Numeric_Owners = true; Delegations = false; }
NFS_KRB5 { Active_krb5 = false; }
LOG { Default_Log_Level = EVENT; }
CEPH { Ceph_Conf = "/files/ceph.conf"; }
`
	for i, share := range shares {
		text += fmt.Sprintf(`EXPORT { Export_Id = %d; Path = "%s"; Pseudo = "/%s"; Filesystem_Id = 2.%[1]d; Access_Type = RW; Squash = No_Root_Squash;
  SecType = sys; Protocols = 4; Transports = TCP; FSAL { Name = CEPH; Filesystem = "%[4]s"; User_Id = "%[5]s"; } }
`, 40+i, share.path, share.name, filesystem, share.user)
	}
	return text
}

// forward forwards a local port to a pod's port and returns the local address.
func forward(ctx context.Context, pod string, port int) string {
	GinkgoHelper()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	command := exec.CommandContext(background, "kubectl", "--namespace", c.Namespace, "port-forward", "pod/"+pod, fmt.Sprintf(":%d", port))
	output, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		stop()
		_ = command.Wait() // It fails, as the process was killed.
	})
	buffer := make([]byte, 1<<10)
	n, err := output.Read(buffer)
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+)`).FindSubmatch(buffer[:n])
	Expect(found).NotTo(BeNil(), string(buffer[:n]))
	go func() { _, _ = output.Read(make([]byte, 1<<20)) }() // It prints a line for each connection.
	return string(found[1])
}

// attacker is a client that sends arbitrary file handles.
type attacker struct {
	peer  *peertest.Peer
	tried int
}

// do runs operations on a handle (nil: the root) and returns the status and the last result.
func (a *attacker) do(handle []byte, operations ...nfsv4.NfsArgop4) (nfsv4.Nfsstat4, nfsv4.NfsResop4) {
	GinkgoHelper()
	var from nfsv4.NfsArgop4 = &nfsv4.NfsArgop4_OP_PUTROOTFH{}
	if handle != nil {
		from = &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: handle}}
	}
	for {
		answer, err := a.peer.Call(append([]nfsv4.NfsArgop4{a.peer.Sequence(0), from}, operations...)...)
		Expect(err).NotTo(HaveOccurred())
		if answer.Status == nfsv4.NFS4ERR_DELAY {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		return answer.Status, answer.Resarray[len(answer.Resarray)-1]
	}
}

// must runs operations and fails the spec if they fail.
func (a *attacker) must(handle []byte, operations ...nfsv4.NfsArgop4) nfsv4.NfsResop4 {
	GinkgoHelper()
	status, result := a.do(handle, operations...)
	Expect(client.StatusName(status)).To(Equal("NFS4_OK"), "%T", result)
	return result
}

// handleAt returns the handle that the server gives for a path.
func (a *attacker) handleAt(names ...string) []byte {
	GinkgoHelper()
	var operations []nfsv4.NfsArgop4
	for _, name := range names {
		operations = append(operations, lookUp(name))
	}
	result := a.must(nil, append(operations, &nfsv4.NfsArgop4_OP_GETFH{})...)
	return result.(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
}

func lookUp(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_LOOKUP{Oplookup: nfsv4.Lookup4args{Objname: name}}
}

func getAttr() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_GETATTR{Opgetattr: nfsv4.Getattr4args{AttrRequest: nfsv4.Bitmap4{1<<nfsv4.FATTR4_TYPE | 1<<nfsv4.FATTR4_SIZE}}}
}

func readDir() nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 4096, Maxcount: 16384, AttrRequest: nfsv4.Bitmap4{1 << nfsv4.FATTR4_RDATTR_ERROR},
	}}
}

func read(state nfsv4.Stateid4) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_READ{Opread: nfsv4.Read4args{Stateid: state, Count: 64}}
}

func write(state nfsv4.Stateid4, data string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_WRITE{Opwrite: nfsv4.Write4args{Stateid: state, Stable: nfsv4.FILE_SYNC4, Data: []byte(data)}}
}

func mode(bits uint32) nfsv4.Fattr4 {
	return nfsv4.Fattr4{
		Attrmask: nfsv4.Bitmap4{0, 1 << (nfsv4.FATTR4_MODE - 32)}, AttrVals: binary.BigEndian.AppendUint32(nil, bits),
	}
}

func mkdir(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_CREATE{Opcreate: nfsv4.Create4args{Objtype: &nfsv4.Createtype4_NF4DIR{}, Objname: name, Createattrs: mode(0o777)}}
}

func create(name string) nfsv4.NfsArgop4 {
	return &nfsv4.NfsArgop4_OP_OPEN{Opopen: nfsv4.Open4args{
		ShareAccess: nfsv4.OPEN4_SHARE_ACCESS_BOTH, Owner: nfsv4.StateOwner4{Owner: []byte("attacker " + name)},
		Openhow: &nfsv4.Openflag4_OPEN4_CREATE{How: &nfsv4.Createhow4_UNCHECKED4{Createattrs: mode(0o666)}},
		Claim:   &nfsv4.OpenClaim4_CLAIM_NULL{File: name},
	}}
}

// open creates a file and keeps it open.
func (a *attacker) open(directory []byte, name string) nfsv4.Stateid4 {
	GinkgoHelper()
	result := a.must(directory, create(name))
	return result.(*nfsv4.NfsResop4_OP_OPEN).Opopen.(*nfsv4.Open4res_NFS4_OK).Resok4.Stateid
}

// forged returns the attacker's own handle with another inode and snapshot.
func forged(own []byte, inode, snapshot uint64) []byte {
	made := slices.Clone(own)
	binary.LittleEndian.PutUint64(made[inodeAt:], inode)
	binary.LittleEndian.PutUint64(made[snapshotAt:], snapshot)
	return made
}

func inodeOf(handle []byte) uint64 { return binary.LittleEndian.Uint64(handle[inodeAt:]) }

func ofExport(handle []byte, export uint16) []byte {
	made := slices.Clone(handle)
	binary.BigEndian.PutUint16(made[exportAt:], export)
	return made
}

// refuse tries operations on a handle. An operation that succeeds, or that fails for a reason other than the handle, is a
// security hole.
func (a *attacker) refuse(what string, handle []byte, operations map[string]nfsv4.NfsArgop4, statuses ...nfsv4.Nfsstat4) {
	GinkgoHelper()
	began := time.Now()
	for name, operation := range operations {
		for _, asRoot := range []bool{false, true} {
			a.peer.AsRoot = asRoot
			a.tried++
			status, _ := a.do(handle, operation)
			Expect(slices.Contains(statuses, status)).To(BeTrue(), "%s of %s (root: %t): %s for %x", name, what, asRoot, client.StatusName(status), handle)
		}
	}
	a.peer.AsRoot = false
	GinkgoWriter.Printf("%6.2f s  %s\n", time.Since(began).Seconds(), what)
}

// attributes only tests whether the server accepts a handle.
func attributes() map[string]nfsv4.NfsArgop4 { return map[string]nfsv4.NfsArgop4{"GETATTR": getAttr()} }

// everything has all operations on a handle. The stateid is valid, but of another file.
func everything(held nfsv4.Stateid4) map[string]nfsv4.NfsArgop4 {
	return map[string]nfsv4.NfsArgop4{
		"GETATTR": getAttr(), "READDIR": readDir(), "LOOKUP": lookUp("secret"), "GETFH": &nfsv4.NfsArgop4_OP_GETFH{},
		"READ": read(nfsv4.Stateid4{}), "READ with a stateid": read(held), "WRITE": write(nfsv4.Stateid4{}, "pwned"), "WRITE with a stateid": write(held, "pwned"),
		"MKDIR": mkdir("pwned"), "OPEN": create("pwned"),
		"SETATTR": &nfsv4.NfsArgop4_OP_SETATTR{Opsetattr: nfsv4.Setattr4args{ObjAttributes: mode(0o777)}},
		"REMOVE":  &nfsv4.NfsArgop4_OP_REMOVE{Opremove: nfsv4.Remove4args{Target: "secret"}},
	}
}

// world is a ganesha with two shares and their content.
type world struct {
	attacker
	mine, theirs                   subvolume
	own, ownFile                   []byte // Handles of the attacker's share and of a file in it,
	other, directory, secret, busy []byte // and of the other share, which a client can't get by NFS.
	held                           nfsv4.Stateid4
}

func newWorld(ctx context.Context, name, image string, change func(*corev1.Container)) *world {
	GinkgoHelper()
	w := &world{mine: newSubvolume(ctx, name+"-mine"), theirs: newSubvolume(ctx, name+"-theirs")}
	content := clientFiles(w.mine.account, w.theirs.account)
	content["ceph.conf"] += "keyring = /files/ceph.$name.keyring\n"
	content["ganesha.conf"] = ganeshaOf(w.mine, w.theirs)
	content["handle-key"] = handleKey
	files(ctx, name, content)
	run(ctx, name, image, name, "/files", func(container *corev1.Container) {
		container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 10, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"grep", "-q", ":0801 ", "/proc/net/tcp6", "/proc/net/tcp"}},
		}}
		change(container)
	}, "ganesha.nfsd", "-F", "-f", "/files/ganesha.conf", "-L", "STDOUT", "-p", "/run/ganesha/pid")
	w.enter(ctx, forward(ctx, name, 2049))
	return w
}

// enter connects and creates in both shares what the test needs.
func (w *world) enter(ctx context.Context, server string) {
	GinkgoHelper()
	peer, err := peertest.Connect(ctx, server, "127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = peer.Close() })
	w.peer = peer
	status, err := peer.Login(w.mine.name)
	Expect(err).NotTo(HaveOccurred())
	Expect(client.StatusName(status)).To(Equal("NFS4_OK"))
	w.must(nil, &nfsv4.NfsArgop4_OP_RECLAIM_COMPLETE{})

	w.own, w.other = w.handleAt(w.mine.name), w.handleAt(w.theirs.name)
	w.held = w.open(w.own, "mine")
	w.must(w.handleAt(w.mine.name, "mine"), write(w.held, "my own"))
	state := w.open(w.other, "secret")
	w.must(w.handleAt(w.theirs.name, "secret"), write(state, "a secret"))
	w.must(w.other, mkdir("directory"))
	w.open(w.other, "busy") // Stays open.
	w.ownFile, w.secret = w.handleAt(w.mine.name, "mine"), w.handleAt(w.theirs.name, "secret")
	w.directory, w.busy = w.handleAt(w.theirs.name, "directory"), w.handleAt(w.theirs.name, "busy")
}

// unharmed checks that the other share has what the test created there.
func (w *world) unharmed() {
	GinkgoHelper()
	result := w.must(w.secret, read(nfsv4.Stateid4{}))
	data := result.(*nfsv4.NfsResop4_OP_READ).Opread.(*nfsv4.Read4res_NFS4_OK).Resok4.Data
	Expect(string(data)).To(Equal("a secret"))
	listed := w.must(w.other, readDir()).(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply.Entries
	var names []string
	for ; listed != nil; listed = listed.Nextentry {
		names = append(names, listed.Name)
	}
	Expect(names).To(ConsistOf("secret", "directory", "busy"))
}

// forgeries returns unsigned handles with the attacker's own export ID that name objects outside its share.
func (w *world) forgeries(bare func([]byte) []byte) map[string][]byte {
	own := bare(w.own)
	export := binary.BigEndian.Uint16(own[exportAt:])
	at := func(inode uint64) []byte { return forged(own, inode, inMainTree) }
	foreign := at(inodeOf(w.other))
	binary.LittleEndian.PutUint64(foreign[filesystemAt:], 99)
	return map[string][]byte{
		"the other share":                           at(inodeOf(w.other)),
		"a directory of the other share":            at(inodeOf(w.directory)),
		"a file of the other share":                 at(inodeOf(w.secret)),
		"a file that is open":                       at(inodeOf(w.busy)),
		"the root of the file system":               at(1),
		"/volumes, as a rule":                       at(0x10000000000),
		"its first directory":                       at(0x10000000001),
		"its second directory":                      at(0x10000000002),
		".ceph":                                     at(3),
		"the journal's directory of rank 0":         at(0x100),
		"what rank 0 removed":                       at(0x600),
		"what rank 1 removed":                       at(0x60a),
		"an inode that is not":                      at(0x1000ffffffff),
		"the other share's own handle, export mine": ofExport(bare(w.other), export),
		"a file's own handle, export mine":          ofExport(bare(w.secret), export),
		"the other share in file system 99":         foreign,
		"a snapshot that is not":                    forged(own, inodeOf(w.own), 1),
		"the other share in a snapshot":             forged(own, inodeOf(w.other), 1),
		"the other share's snapshots":               forged(own, inodeOf(w.other), snapshotDirectory),
		"the root's snapshots":                      forged(own, 1, snapshotDirectory),
		"/volumes' snapshots":                       forged(own, 0x10000000000, snapshotDirectory),
	}
}

var _ = Describe("Forged file handles", Label("ceph"), func() {
	It("of other shares are refused by the MDS if ganesha does not sign handles", func(ctx SpecContext) {
		image := os.Getenv("HOWDAH_UNSIGNED_IMAGE")
		if image == "" {
			Skip("HOWDAH_UNSIGNED_IMAGE is not set: an image of the Dockerfile's stage `packaged`")
		}
		w := newWorld(ctx, "unsigned", image, func(*corev1.Container) {})
		w.attackUnsigned()
	}, SpecTimeout(limit))

	It("are refused by ganesha if it signs handles", func(ctx SpecContext) {
		w := newWorld(ctx, "signed", serverImage(), func(container *corev1.Container) {
			container.Env = []corev1.EnvVar{{Name: "HOWDAH_HANDLE_KEY", Value: "/files/handle-key"}}
		})
		w.attackSigned()
	}, SpecTimeout(limit))
})

// attackUnsigned attacks a server where only the MDS checks.
func (w *world) attackUnsigned() {
	GinkgoHelper()
	Expect(w.own).To(HaveLen(bareBytes))
	Expect(w.ownFile).To(Equal(forged(w.own, inodeOf(w.ownFile), inMainTree)), "the layout of handles differs from this test's")
	for what, handle := range w.forgeries(slices.Clone[[]byte]) {
		w.refuse(what, handle, everything(w.held), nfsv4.NFS4ERR_ACCESS, nfsv4.NFS4ERR_STALE)
	}
	w.unharmed()
	AddReportEntry("forged handles tried without signatures", w.tried)
}

// attackSigned attacks a server that signs handles: without its key, and then with it, where only the MDS checks.
func (w *world) attackSigned() {
	GinkgoHelper()
	Expect(w.own).To(HaveLen(signedBytes))
	key := [16]byte([]byte(handleKey))
	Expect(ganeshatest.SignHandle(key, ganeshatest.BareHandle(w.own), 0)).To(Equal(w.own), "the signature differs from the reference implementation's")
	for what, handle := range w.forgeries(ganeshatest.BareHandle) {
		w.refuse(what+", unsigned", handle, attributes(), nfsv4.NFS4ERR_BADHANDLE)
		signed := ganeshatest.SignHandle(key, handle, 0)
		w.refuse(what+", with the signature of another", slices.Concat(signed[:bareBytes], w.own[bareBytes:]), attributes(), nfsv4.NFS4ERR_BADHANDLE)
		// With the key, the attacker still has to pass the MDS.
		w.refuse(what+", with a good signature", signed, attributes(), nfsv4.NFS4ERR_ACCESS, nfsv4.NFS4ERR_STALE)
	}
	for _, own := range [][]byte{w.own, w.ownFile} {
		for bit := range 8 * len(own) {
			flipped := bytes.Clone(own)
			flipped[bit/8] ^= 1 << (bit % 8)
			w.tried++
			status, _ := w.do(flipped, getAttr())
			Expect(status).To(BeElementOf(nfsv4.NFS4ERR_BADHANDLE, nfsv4.NFS4ERR_STALE), "bit %d flipped: %s", bit, client.StatusName(status))
		}
	}
	w.must(w.ownFile, read(w.held))
	w.unharmed()
	AddReportEntry("forged handles tried with signatures", w.tried)
}
