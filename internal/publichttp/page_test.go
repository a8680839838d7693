package publichttp

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted is a page that takes a given time to make, and that contains how often it was made.
func counted(age, takes time.Duration) (handler http.Handler, made *atomic.Int32) {
	made = &atomic.Int32{}
	return Page(age, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := "made " + strconv.Itoa(int(made.Add(1)))
		time.Sleep(takes)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, text)
	})), made
}

func get(handler http.Handler, encoding string) *httptest.ResponseRecorder {
	request, answer := httptest.NewRequest(http.MethodGet, "/metrics?x=y", http.NoBody), httptest.NewRecorder()
	request.Header.Set("Accept-Encoding", encoding)
	handler.ServeHTTP(answer, request)
	return answer
}

func TestAPageIsMadeOnceForAllWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, made := counted(time.Second, 0)
		if a := get(handler, ""); a.Code != http.StatusTeapot || a.Body.String() != "made 1" || a.Header().Get("Content-Type") != "text/plain; version=0.0.4" || a.Header().Get("Content-Encoding") != "" {
			t.Errorf("%d %q %v", a.Code, a.Body, a.Header())
		}
		time.Sleep(time.Millisecond)
		began := time.Now()
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() {
				a := get(handler, "gzip, br")
				reader, err := gzip.NewReader(a.Body)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := io.ReadAll(reader); err != nil || string(text) != "made 2" || a.Header().Get("Content-Encoding") != "gzip" {
					t.Errorf("by gzip: %q, %v, %v", text, err, a.Header())
				}
			})
		}
		group.Wait()
		if waited := time.Since(began); waited != time.Second-time.Millisecond || made.Load() != 2 {
			t.Errorf("a thousand waited %s, and it was made %d times", waited, made.Load())
		}
	})
}

// A benchmark reads counters before and after a run. An answer that is older than its request would miss part of the run.
func TestAPageIsNeverOlderThanTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler, _ := counted(time.Second, 2*time.Second)
		for want := range 5 {
			time.Sleep(time.Millisecond)
			asked := time.Now()
			if a := get(handler, ""); a.Body.String() != "made "+strconv.Itoa(want+1) {
				t.Errorf("%q is not of the question", a.Body)
			}
			if waited := time.Since(asked); waited > pauseMost+2*time.Second {
				t.Errorf("waited %s", waited)
			}
		}
	})
}

func TestOneCheckIsMadeForAllWhoAskMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, failure := 0, errors.New("not yet")
		check := Shared(100*time.Millisecond, 3*time.Second, func(context.Context) error {
			made++
			time.Sleep(time.Second)
			return failure
		})
		var group sync.WaitGroup
		for range 1000 {
			group.Go(func() {
				if err := check(t.Context()); !errors.Is(err, failure) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		_ = check(t.Context())
		if made != 1 {
			t.Errorf("made %d times", made)
		}
		time.Sleep(100 * time.Millisecond)
		if _ = check(t.Context()); made != 2 {
			t.Errorf("made %d times after its age", made)
		}
	})
}

func TestWhoAsksForACheckWaitsNoLongerThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := Shared(time.Second, 3*time.Second, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := check(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		synctest.Wait()
		time.Sleep(3 * time.Second) // The check has ended, too.
	})
}

func TestOneAddressIsInAHandlerOnce(t *testing.T) {
	inside, leave := make(chan struct{}, 2), make(chan struct{})
	handler := AtOnce(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	get := func(from string) int {
		request, answer := httptest.NewRequest(http.MethodGet, "/sizes", http.NoBody), httptest.NewRecorder()
		request.RemoteAddr = from
		handler.ServeHTTP(answer, request)
		return answer.Code
	}
	var group sync.WaitGroup
	group.Go(func() { get("10.0.0.1:1000") })
	<-inside
	if code := get("10.0.0.1:1001"); code != http.StatusServiceUnavailable {
		t.Errorf("the same address: %d", code)
	}
	group.Go(func() { get("10.0.0.2:1000") })
	<-inside
	if code := get("10.0.0.3:1000"); code != http.StatusServiceUnavailable {
		t.Errorf("a third: %d", code)
	}
	close(leave)
	group.Wait()
	if code := get("10.0.0.1:1002"); code != http.StatusOK {
		t.Errorf("after both have left: %d", code)
	}
}
