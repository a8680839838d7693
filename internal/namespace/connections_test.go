package namespace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/howdah/howdah/internal/serverpod"
)

func TestMetricsOfConnections(t *testing.T) {
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

func TestMetricsOfClients(t *testing.T) {
	connections := map[string]int{}
	for i := range serverpod.MaxClients + 3 {
		connections[fmt.Sprintf("10.0.%d.%d", i/256, i%256)] = 1
	}
	connections["10.0.0.7"] = 16
	answer := serverpod.NewClients(connections)
	if len(answer.Clients) != serverpod.MaxClients || answer.More != 3 || answer.Clients[0] != (serverpod.Client{Address: "10.0.0.7", Connections: 16}) {
		t.Errorf("%d and %d more, %+v first", len(answer.Clients), answer.More, answer.Clients[0])
	}

	w := newWorld(t, 1)
	w.share("data", 1)
	replica := w.serve("a")
	w.mount(replica) // From the loopback interface, as its own probe: neither is a client.
	res, err := http.Get("http://" + replica.manager + serverpod.ClientsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	for _, c := range answer.Clients {
		t.Errorf("%+v is no client", c)
	}
}
