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
	"testing"
	"testing/synctest"
	"time"
)

func TestAPageIsMadeOnceForAllWhoAskWithinItsAge(t *testing.T) {
	made := 0
	p := Page(time.Second, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made++
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "made "+strconv.Itoa(made))
	})).(*page)
	now := time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	get := func(encoding string) *httptest.ResponseRecorder {
		request, answer := httptest.NewRequest(http.MethodGet, "/metrics?x=y", http.NoBody), httptest.NewRecorder()
		request.Header.Set("Accept-Encoding", encoding)
		p.ServeHTTP(answer, request)
		return answer
	}
	for range 3 {
		if a := get(""); a.Code != http.StatusTeapot || a.Body.String() != "made 1" || a.Header().Get("Content-Type") != "text/plain; version=0.0.4" || a.Header().Get("Content-Encoding") != "" {
			t.Errorf("%d %q %v", a.Code, a.Body, a.Header())
		}
	}
	a := get("gzip, br")
	reader, err := gzip.NewReader(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "made 1" || a.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("by gzip: %q, %v, %v", text, err, a.Header())
	}
	now = now.Add(time.Second)
	if a := get(""); a.Body.String() != "made 2" {
		t.Errorf("a second later: %q", a.Body)
	}
}

func TestAPageThatTakesLongToMakeIsGoodForLonger(t *testing.T) {
	now, made := time.Unix(1000, 0), 0
	p := Page(time.Second, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		made++
		now = now.Add(500 * time.Millisecond)
	})).(*page)
	p.now = func() time.Time { return now }
	for _, step := range []struct {
		after time.Duration
		made  int
	}{{0, 1}, {4900 * time.Millisecond, 1}, {100 * time.Millisecond, 2}} {
		now = now.Add(step.after)
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if made != step.made {
			t.Errorf("made %d times, want %d", made, step.made)
		}
	}
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
