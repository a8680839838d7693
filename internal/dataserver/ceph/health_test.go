package ceph

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/howdah/howdah/internal/ceph"
	"github.com/howdah/howdah/internal/ceph/client"
	"github.com/howdah/howdah/internal/dataserver/backend"
)

// sick is a Ceph cluster with a health, or that can't be reached.
type sick struct {
	mutex  sync.Mutex
	health string
	err    error
	// connections counts those that were made and not closed, made all.
	connections, made int
	// watch are the addresses that watch the grace object.
	watch []string
}

func (s *sick) connect(context.Context) (healthClient, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.connections++
	s.made++
	return s, nil
}

func (s *sick) Close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.connections--
}

// set changes what it answers from now on.
func (s *sick) set(health string, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.health, s.err = health, err
}

func (s *sick) Command(_ context.Context, command ceph.Command) (string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.err != nil {
		return "", s.err
	}
	if command.Arguments["prefix"] == "fs ls" {
		return `[{"name":"fs1","metadata_pool":"m","metadata_pool_id":1,"data_pool_ids":[2],"data_pools":["d"]}]`, nil
	}
	return s.health, nil
}

func (s *sick) Watchers(context.Context, client.Place, string) (found []ceph.Watcher, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, address := range s.watch {
		found = append(found, ceph.Watcher{Address: address})
	}
	return found, s.err
}

// link is a connection to it that was made with a key; Ceph leaves one with a key that was replaced without an answer.
type link struct {
	*sick
	key int
}

func (l *link) Command(ctx context.Context, command ceph.Command) (string, error) {
	if l.key != l.made {
		return "", &client.Error{Code: syscall.ETIMEDOUT, Words: "health: Connection timed out"}
	}
	return l.sick.Command(ctx, command)
}

// A connection whose key was replaced says nothing about the health of Ceph.
func TestAConnectionWithAnOldKeyIsReplaced(t *testing.T) {
	cluster := &sick{health: well}
	watch := &healthWatch{
		connect: func(ctx context.Context) (healthClient, error) {
			_, err := cluster.connect(ctx)
			return &link{cluster, cluster.made}, err
		},
		monitors: func() string { return "10.0.0.1:3300" }, fileSystem: "fs1", recoveryPool: "howdah",
	}
	look := func(what string, want backend.Health) {
		t.Helper()
		if seen, known := watch.look(t.Context()); !known || seen != want {
			t.Errorf("%s: %+v, known: %v", what, seen, known)
		}
	}
	look("at first", backend.Health{})
	cluster.made++ // The user gets another key.
	look("after a new key", backend.Health{})
	if cluster.connections != 1 {
		t.Errorf("%d connections are open", cluster.connections)
	}
}

const (
	well     = `{"checks":{}}`
	osdDown  = `{"checks":{"OSD_DOWN":{"severity":"HEALTH_WARN","summary":{"message":""},"detail":[{"message":"osd.1 is down"}]}}}`
	poolFull = `{"checks":{"POOL_FULL":{"severity":"HEALTH_WARN","summary":{"message":""},"detail":[{"message":"pool 'd' is full (no space)"}]}}}`
)

func TestHealthIsReportedWhenItChanges(t *testing.T) {
	timeout := &client.Error{Code: syscall.ETIMEDOUT, Words: "health: Connection timed out"}
	synctest.Test(t, func(t *testing.T) {
		ceph := &sick{err: timeout}
		watch := &healthWatch{connect: ceph.connect, monitors: func() string { return "10.0.0.1:3300" }, fileSystem: "fs1", recoveryPool: "howdah"}
		var mutex sync.Mutex
		var reported []backend.Health
		refuse := false
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch.run(ctx, func(health backend.Health) error {
				mutex.Lock()
				defer mutex.Unlock()
				if refuse {
					return errors.New("the API server is away")
				}
				reported = append(reported, health)
				return nil
			})
		}()
		set := func(refused bool) {
			mutex.Lock()
			defer mutex.Unlock()
			refuse, reported = refused, nil
		}
		after := func(health string, err error, want ...string) {
			t.Helper()
			ceph.set(health, err)
			mutex.Lock()
			reported = nil
			mutex.Unlock()
			time.Sleep(3 * healthEvery)
			synctest.Wait()
			mutex.Lock()
			defer mutex.Unlock()
			var got []string
			for _, h := range reported {
				got = append(got, strings.SplitN(h.Failing+"/"+h.Degraded, ";", 2)[0])
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %v: reported %q, want %q", health, err, got, want)
			}
		}
		after("", timeout) // Never reached: Claim says so.
		after(well, nil, "/")
		after(well, nil)
		after(osdDown, nil, "/OSDs that are down: osd.1")
		after(poolFull, nil, `full, so that writes end with "No space left on device": pool 'd'`)
		after("", timeout, "no monitor answers at 10.0.0.1:3300, and clients wait: is a majority of the monitors running, and does the network let the data servers' pods reach them?/")
		after("", &client.Error{Code: syscall.EACCES, Words: "no"}) // Not known, so nothing changes.
		after("", client.ErrGone)
		set(true)
		after(well, nil)
		set(false)
		after(well, nil, "/")
		cancel()
		<-ended
		if ceph.connections != 0 {
			t.Errorf("%d connections are left of %d", ceph.connections, ceph.made)
		}
	})
}
