package namespace

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/howdah/howdah/internal/serverpod"
)

func TestANamespaceServerTellsItsConnections(t *testing.T) {
	w := newWorld(t, 1)
	w.share("data", 1)
	replica := w.serve("a")
	connections := func() (c serverpod.Connections) {
		res, err := http.Get("http://" + replica.manager + serverpod.ConnectionsPath)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if err := json.NewDecoder(res.Body).Decode(&c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := connections(); c.Limit < 64 {
		t.Errorf("%+v", c)
	}
	for range 20 {
		w.mount(replica)
	}
	// Its own probe has a connection now and then.
	if c := connections(); c.Used < 20 || c.Used > 22 {
		t.Errorf("20 clients, and %+v", c)
	}
}
