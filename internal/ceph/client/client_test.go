package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/ceph"
)

// TestMain lets the test be the program: it then answers each request by what is in the environment.
func TestMain(m *testing.M) {
	script, program := os.LookupEnv("CEPH_CLIENT_TEST_ANSWERS")
	if !program {
		os.Exit(m.Run())
	}
	input := bufio.NewScanner(os.Stdin)
	for i, answer := range strings.Split(script, "\n") {
		if i > 0 && !input.Scan() {
			os.Exit(0)
		}
		switch answer {
		case "dies":
			fmt.Fprintln(os.Stderr, "assertion failed")
			os.Exit(134)
		case "eats":
			var eaten [][]byte
			for range 400 {
				part := make([]byte, 1<<20)
				for at := 0; at < len(part); at += 4096 {
					part[at] = 1
				}
				eaten = append(eaten, part)
				time.Sleep(time.Millisecond)
			}
			fmt.Printf(`{"code":0,"result":{"a":%d}}`+"\n", len(eaten))
		case "talks":
			fmt.Print(`{"code":0,"result":{`)
			for range maxAnswer >> 20 {
				fmt.Print(strings.Repeat(`"a":1,`, 1<<20/6+1))
			}
			fmt.Println(`"a":1}}`)
		case "hangs":
			time.Sleep(time.Hour)
		case "echo":
			fmt.Printf(`{"code":0,"result":%s}`+"\n", input.Text())
		default:
			fmt.Println(answer)
		}
	}
}

// answering is a client whose program gives these answers, the first of them when it is connected.
func answering(t *testing.T, answers ...string) (*Client, error) {
	t.Helper()
	t.Setenv("CEPH_CLIENT_TEST_ANSWERS", strings.Join(answers, "\n"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := Connect(ctx, Options{Binary: os.Args[0], User: "howdah-test"})
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

func TestWhatTheProgramSaysIsTheAnswer(t *testing.T) {
	c, err := answering(t, `{"code":0}`,
		`{"code":0,"result":{"out":"[]","words":""}}`,
		`{"code":2,"words":"no such subvolume"}`,
		`{"code":2,"words":"reading grace: No such file or directory"}`,
		`{"code":0,"result":{"data":"01ff","keys":{"a-0":"02"},"version":7}}`,
		`{"code":0,"result":[{"address":"10.0.0.1:0/5","cookie":1}]}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, volume := t.Context(), ceph.Volume{FileSystem: "fs1", Group: "g"}
	if out, err := c.Command(ctx, volume.Info("s")); err != nil || out != "[]" {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := c.Command(ctx, volume.Info("s")); !errors.Is(err, syscall.ENOENT) || err.Error() != "fs subvolume info: no such subvolume" {
		t.Errorf("%v", err)
	}
	if object, err := c.Read(ctx, Place{"p", "n"}, "grace"); object != nil || err != nil {
		t.Errorf("an object that is not there: %v, %v", object, err)
	}
	want := &ceph.Object{Data: []byte{1, 255}, Keys: map[string][]byte{"a-0": {2}}, Version: 7}
	if object, err := c.Read(ctx, Place{"p", "n"}, "grace"); err != nil || cmp.Diff(want, object) != "" {
		t.Errorf("%+v, %v", object, err)
	}
	if watchers, err := c.Watchers(ctx, Place{"p", "n"}, "grace"); err != nil || len(watchers) != 1 || watchers[0].Address != "10.0.0.1:0/5" {
		t.Errorf("%v, %v", watchers, err)
	}
}

func TestAClientThatCanNotConnectSaysWhy(t *testing.T) {
	for answer, want := range map[string]string{
		`{"code":13,"words":"connecting to Ceph as client.howdah-test: Permission denied"}`: "Permission denied",
		"dies": "assertion failed",
	} {
		if _, err := answering(t, answer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := Connect(t.Context(), Options{Binary: "/does/not/exist", User: "u"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestAProgramThatEndsIsGone(t *testing.T) {
	c, err := answering(t, `{"code":0}`, "dies")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.FSID(t.Context()); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "assertion failed") {
			t.Errorf("%v", err)
		}
	}
}

// An answer that comes too late must not be that of the next request.
// A client can make millions of directories, and then ask a data server for their sizes. The data server's memory is for all shares.
func TestAListThatIsTooLongEndsTheProgram(t *testing.T) {
	for _, answer := range []string{"eats", "talks"} {
		t.Setenv("CEPH_CLIENT_TEST_ANSWERS", `{"code":0}`+"\n"+answer)
		c, err := Connect(t.Context(), Options{Binary: os.Args[0], User: "howdah-test", Memory: 100 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if sizes, err := c.Sizes(t.Context(), Directory{}, 4, ".howdah"); err == nil || !strings.Contains(err.Error(), "more directories at this depth than can be listed") {
			t.Errorf("%s: %d sizes, %v", answer, len(sizes), err)
		}
		if _, err := c.FSID(t.Context()); !errors.Is(err, ErrGone) {
			t.Errorf("%s: the program goes on: %v", answer, err)
		}
	}
}

func TestARequestThatIsNotWaitedForEndsTheProgram(t *testing.T) {
	c, err := answering(t, `{"code":0}`, "hangs", `{"code":0,"result":"late"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.FSID(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if id, err := c.FSID(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("%q, %v", id, err)
	}
}

// The late answer of a manager was that of the next command: a share was given the path of another one.
func TestAManagerThatDoesNotAnswerInTimeEndsTheProgram(t *testing.T) {
	c, err := answering(t, `{"code":0}`, `{"code":110,"words":"Connection timed out"}`, `{"code":0,"result":"id"}`,
		`{"code":110,"words":"Connection timed out"}`, `{"code":0,"result":{"out":"late","words":""}}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, volume := t.Context(), ceph.Volume{FileSystem: "fs1", Group: "g"}
	if _, err := c.Command(ctx, ceph.GetUser("u")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("%v", err)
	}
	if id, err := c.FSID(ctx); id != "id" || err != nil {
		t.Errorf("after a monitor that did not answer, which librados forgets: %q, %v", id, err)
	}
	if _, err := c.Command(ctx, volume.Info("a")); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("%v", err)
	}
	if out, err := c.Command(ctx, volume.Info("b")); !errors.Is(err, ErrGone) {
		t.Errorf("%q, %v", out, err)
	}
}

func TestAKeyIsInNoError(t *testing.T) {
	c, err := answering(t, `{"code":0}`, `{"code":0,"result":"SECRET"}`, `SECRET`)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Command(t.Context(), ceph.GetUser("u")); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v", err)
		}
	}
}
