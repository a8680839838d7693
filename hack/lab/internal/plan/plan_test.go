package plan

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseCaps(t *testing.T) {
	tests := []struct {
		text    string
		want    map[string]int
		wantErr string
	}{
		{text: "", want: map[string]int{}},
		{text: "0", want: map[string]int{}},
		{text: "160", want: map[string]int{"node1": 160, "node2": 160, "node3": 160}},
		{text: "160mbit", want: map[string]int{"node1": 160, "node2": 160, "node3": 160}},
		{text: "node1=160,node3=80", want: map[string]int{"node1": 160, "node3": 80}},
		{text: "node1=160, node2=0", want: map[string]int{"node1": 160}},
		{text: "fast", wantErr: "want 0 to 100000"},
		{text: "-1", wantErr: "want 0 to 100000"},
		{text: "node1=160,80", wantErr: "want NODE=MBIT"},
		{text: "node1=1,node1=2", wantErr: "two caps for node1"},
	}
	for _, test := range tests {
		got, err := ParseCaps(test.text, 3)
		if test.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("ParseCaps(%q) error = %v, want one with %q", test.text, err, test.wantErr)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("ParseCaps(%q) = %v, %v, want %v", test.text, got, err, test.want)
		}
	}
}

func TestMemoryMiB(t *testing.T) {
	for text, want := range map[string]int{"1500M": 1500, "2G": 2048, "700m": 700} {
		if got, err := MemoryMiB(text); err != nil || got != want {
			t.Errorf("MemoryMiB(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1500", "M", "-2G", "64M", "2T"} {
		if got, err := MemoryMiB(text); err == nil {
			t.Errorf("MemoryMiB(%q) = %d, want an error", text, got)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Settings{Name: "howdah", Nodes: 3, Memory: "1500M"}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate(%+v) = %v", good, err)
	}
	for _, change := range []func(*Settings){
		func(s *Settings) { s.Name = "" },
		func(s *Settings) { s.Name = "../etc" },
		func(s *Settings) { s.Name = "a-name-that-is-far-too-long" },
		func(s *Settings) { s.Nodes = 0 },
		func(s *Settings) { s.Nodes = maxNodes + 1 },
		func(s *Settings) { s.Memory = "lots" },
		func(s *Settings) { s.Caps = map[string]int{"node4": 100} },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil {
			t.Errorf("Validate(%+v) = nil, want an error", bad)
		}
	}
}

func TestNodeListIsUnique(t *testing.T) {
	nodes := Settings{Name: "x", Nodes: maxNodes, Caps: map[string]int{"node2": 80}, Outside: true}.Machines()
	if outside := nodes[maxNodes]; outside.IsNode() || !nodes[0].IsNode() || outside.PodCIDRs != nil {
		t.Errorf("the machine outside the cluster: %+v", outside)
	}
	seen := map[string]string{}
	for _, node := range nodes {
		for _, value := range []string{node.Name, node.IP(), strings.Join(node.PodCIDRs, " "), node.MAC, node.Tap} {
			if other, twice := seen[value]; twice {
				t.Errorf("%s and %s share %s", other, node.Name, value)
			}
			seen[value] = node.Name
		}
		if len(node.Tap) > 15 {
			t.Errorf("%s: the kernel allows no interface name as long as %q", node.Name, node.Tap)
		}
	}
	if nodes[0].CapMbit != 0 || nodes[1].CapMbit != 80 {
		t.Errorf("caps are %d and %d, want 0 and 80", nodes[0].CapMbit, nodes[1].CapMbit)
	}
}

func TestSame(t *testing.T) {
	a := Settings{Name: "x", Nodes: 3, Memory: "1G", Caps: map[string]int{"node1": 1}}
	b := Settings{Name: "x", Nodes: 3, Memory: "1G", Caps: map[string]int{"node1": 1}}
	if !a.Same(b) {
		t.Error("equal settings are not the same")
	}
	b.Caps["node1"] = 2
	if a.Same(b) {
		t.Error("another cap is the same")
	}
	b.Caps["node1"], b.Outside = 1, true
	if a.Same(b) {
		t.Error("one more machine is the same")
	}
	b.Outside, b.Family = false, IPv4
	if !a.Same(b) {
		t.Error("a lab of before there were families, and one with IPv4, are not the same")
	}
	b.Family = Dual
	if a.Same(b) {
		t.Error("addresses of two families are the same as of one")
	}
}

func TestPreferredPort(t *testing.T) {
	if first, again := PreferredPort("howdah"), PreferredPort("howdah"); first != again {
		t.Errorf("the port changes from %d to %d", first, again)
	}
	if PreferredPort("howdah") == PreferredPort("labdev") {
		t.Error("two labs prefer one port")
	}
	for _, name := range []string{"a", "howdah", "labdev", "z-9"} {
		if port := PreferredPort(name); port < 1024 || port > 30000 {
			t.Errorf("PreferredPort(%q) = %d, outside the range", name, port)
		}
	}
}
