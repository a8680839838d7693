package dataserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/buildbarn/go-xdr/pkg/protocols/nfsv4"
	"k8s.io/apimachinery/pkg/api/meta"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/dataservertest"
	"github.com/howdah/howdah/internal/serverpod"
)

// handlesStayValid: what a client holds stays good over everything but the end of the key that signed it.
func handlesStayValid(t *testing.T) {
	s := boot(t, "stays", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.settle()
	handle := func() []byte {
		t.Helper()
		made, err := s.from("10.99.0.1").Handle(t.Context(), user, "/alpha/0")
		mustWork(t, "GETFH", err)
		return made
	}
	mustKeep := func(what string, held []byte) {
		t.Helper()
		_, err := s.from("10.99.0.2").StatHandle(t.Context(), user, held)
		mustWork(t, what, err)
	}
	first := handle()
	allWaysGiveTheSame(t, first)

	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = append(spec.Exports, dataservertest.ShareSpec("beta"))
	})
	s.settle()
	mustKeep("a handle after a reload", first)
	pid := s.pid()
	mustWork(t, "kill", syscall.Kill(pid, syscall.SIGKILL))
	s.await("the restart", func(dataservertest.Reported) bool { return s.pid() != 0 && s.pid() != pid })
	s.await("its service", func(dataservertest.Reported) bool { return s.probes.Fit(t.Context()) == nil })
	mustKeep("a handle after kill -9", first)
	if again := handle(); !bytes.Equal(again, first) {
		t.Errorf("the handle was %x and is %x", first, again)
	}

	keys := keysOf("stays")
	exports := s.want.Exports
	restart := func() {
		s.stop()
		s = boot(t, "stays", 1)
		s.apply(func(spec *dataservertest.Wanted) { spec.Exports = exports })
		s.settle()
	}
	mustWork(t, "keep the old key", os.Rename(keys.Current, keys.Previous))
	mustWork(t, "write a new key", os.WriteFile(keys.Current, []byte("some other bytes"), 0o400))
	restart()
	mustKeep("a handle that the previous key signed", first)
	second := handle()
	if bytes.Equal(second, first) {
		t.Errorf("the new key signs nothing: %x", second)
	}
	mustWork(t, "drop the old key", os.Remove(keys.Previous))
	restart()
	mustKeep("a handle that the new key signed", second)
	_, err := s.from("10.99.0.2").StatHandle(t.Context(), user, first)
	mustFailWith(t, "a handle of a key that is gone", err, nfsv4.NFS4ERR_BADHANDLE)
}

// allWaysGiveTheSame: GETFH, GETATTR and READDIR tell the same handle.
func allWaysGiveTheSame(t *testing.T, want []byte) {
	t.Helper()
	w := dialWire(t, "10.99.0.1:2049", 1)
	mask := nfsv4.Bitmap4{1 << nfsv4.FATTR4_FILEHANDLE}
	same := func(way string, attributes nfsv4.Fattr4) {
		t.Helper()
		length := binary.BigEndian.Uint32(attributes.AttrVals)
		if got := attributes.AttrVals[4:][:length]; !bytes.Equal(got, want) {
			t.Errorf("%s gives %x, GETFH %x", way, got, want)
		}
	}
	results := w.results(user, append(lookUp("alpha", "0"), &nfsv4.NfsArgop4_OP_GETATTR{
		Opgetattr: nfsv4.Getattr4args{AttrRequest: mask},
	})...)
	same("GETATTR", results[len(results)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes)
	// The same after PUTFH: the server must give back what it was given.
	results = w.results(user, &nfsv4.NfsArgop4_OP_PUTFH{Opputfh: nfsv4.Putfh4args{Object: want}}, &nfsv4.NfsArgop4_OP_GETATTR{
		Opgetattr: nfsv4.Getattr4args{AttrRequest: mask},
	})
	same("GETATTR after PUTFH", results[len(results)-1].(*nfsv4.NfsResop4_OP_GETATTR).Opgetattr.(*nfsv4.Getattr4res_NFS4_OK).Resok4.ObjAttributes)
	mustWork(t, "mkdir", os.Mkdir("/volumes/stays/0/alpha/inner", 0o755))
	inner := w.results(user, append(lookUp("alpha", "0", "inner"), &nfsv4.NfsArgop4_OP_GETFH{})...)
	want = inner[len(inner)-1].(*nfsv4.NfsResop4_OP_GETFH).Opgetfh.(*nfsv4.Getfh4res_NFS4_OK).Resok4.Object
	listed := w.results(user, append(lookUp("alpha", "0"), &nfsv4.NfsArgop4_OP_READDIR{Opreaddir: nfsv4.Readdir4args{
		Dircount: 4096, Maxcount: 16384, AttrRequest: mask,
	}})...)
	entry := listed[len(listed)-1].(*nfsv4.NfsResop4_OP_READDIR).Opreaddir.(*nfsv4.Readdir4res_NFS4_OK).Resok4.Reply.Entries
	if entry == nil || entry.Name != "inner" {
		t.Fatalf("listed %+v", entry)
	}
	same("READDIR", entry.Attrs)
}

// nothingIsServedUnsigned: neither the supervisor nor ganesha itself starts to serve without a key.
func nothingIsServedUnsigned(t *testing.T) {
	keys := keysOf("keyless")
	for name, text := range map[string]string{"short": "fifteen bytes..", "long": "seventeen bytes.."} {
		path := "/run/handle-key-" + name
		mustWork(t, "write", os.WriteFile(path, []byte(text), 0o400))
		mustEnd(t, "with a "+name+" key", "HOWDAH_HANDLE_KEY="+path)
	}
	mustEnd(t, "without a key")
	mustEnd(t, "with no file", "HOWDAH_HANDLE_KEY=/run/no-such-key")
	mustWork(t, "write", os.WriteFile("/run/handle-key-good", []byte("sixteen bytes..."), 0o400))
	mustEnd(t, "without the old key that was named", "HOWDAH_HANDLE_KEY=/run/handle-key-good", "HOWDAH_HANDLE_OLD_KEY=/run/no-such-key")

	mustWork(t, "make a directory where the key should be", os.Mkdir(keys.Current, 0o755))
	s := boot(t, "keyless", 1)
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.await("the status to say that the key is missing", func(status dataservertest.Reported) bool {
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		return condition != nil && condition.Reason == internalv1.ReasonHandleKeyMissing
	})
	if s.pid() != 0 || s.probes.Fit(t.Context()) == nil {
		t.Errorf("ganesha is process %d, and the server says that it is ready", s.pid())
	}
	mustWork(t, "give it a key", os.Remove(keys.Current))
	mustWork(t, "give it a key", os.WriteFile(keys.Current, []byte("sixteen bytes..."), 0o400))
	s.settle()
	if err := s.probes.Fit(t.Context()); err != nil {
		t.Errorf("with a key: %v", err)
	}
}

// mustEnd runs ganesha with the environment; it must end by itself.
func mustEnd(t *testing.T, what string, environment ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), serverpod.GaneshaBinary, "-v")
	command.Env = append(environment, "LANG=C")
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 78 || !bytes.Contains(output, []byte("without signed file handles")) {
		t.Errorf("ganesha %s: %v, %s", what, err, output)
	}
}

// unsignedGanesha signs no file handles. The image for tests has it, the data servers' image does not.
const unsignedGanesha = "/usr/lib/howdah/ganesha.unsigned"

func unsignedGaneshaIsStopped(t *testing.T) {
	ganeshaOf["unsigned"] = unsignedGanesha
	s := boot(t, "unsigned", 1)
	s.apply(func(*dataservertest.Wanted) {})
	s.settle() // Nothing is exported, so there is nothing to reach.
	pid := s.pid()
	s.apply(func(spec *dataservertest.Wanted) {
		spec.Exports = []internalv1.ShareExportSpec{dataservertest.ShareSpec("alpha")}
	})
	s.await("the status to say that handles are not signed", func(status dataservertest.Reported) bool {
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		return condition != nil && condition.Reason == internalv1.ReasonUnsignedHandleAccepted
	})
	s.await("the process to end", func(dataservertest.Reported) bool { return s.pid() != pid })
	if err := s.probes.Fit(t.Context()); err == nil {
		t.Error("the server says that it is ready")
	}
}
