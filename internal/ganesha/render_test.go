package ganesha_test

import (
	"cmp"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/howdah/howdah/internal/ganesha"
	"github.com/howdah/howdah/internal/ganesha/ganeshatest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func address(t testing.TB, text string) netip.Prefix {
	t.Helper()
	prefix, err := ParseAddress(text)
	if err != nil {
		t.Fatal(err)
	}
	return prefix
}

func server() Config {
	return Config{
		ServerScope: "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c", ServerOwner: "8c5b9a0e-2c57-4d6e-9c0e-0d6f7f0a1b2c-0",
		LeaseSeconds: 10, GraceSeconds: 20, RecoveryRoot: "/volumes/0/.howdah/ganesha",
	}
}

// inCeph has the clients remembered in Ceph.
func inCeph(c *Config) {
	c.LeaseSeconds, c.GraceSeconds, c.RecoveryRoot = 6, 12, ""
	c.Ceph = &Ceph{"/etc/ceph/ceph.conf", "howdah-rec-8c5b", "howdah", c.ServerOwner, c.ServerOwner}
}

func TestEveryFormIsWrittenAsInItsGoldenFile(t *testing.T) {
	trusted := func(t *testing.T) Client {
		return Client{[]netip.Prefix{address(t, "127.0.0.1"), address(t, "10.42.1.7")}, ReadWrite, SquashNone, false}
	}
	tests := map[string]func(*testing.T, *Config){
		"no exports": func(*testing.T, *Config) {},
		"own ports and times": func(_ *testing.T, c *Config) {
			c.Port, c.MonitoringPort, c.LeaseSeconds, c.GraceSeconds = 12049, 19587, 120, 180
			c.Limits, c.AlwaysAdmitted = LimitsFor(0).WithConnections(128), netip.MustParseAddr("127.20.30.40")
		},
		"one export for everybody": func(t *testing.T, c *Config) {
			everybody := Client{[]netip.Prefix{address(t, "0.0.0.0/0"), address(t, "::/0")}, ReadWrite, SquashNone, false}
			c.Exports = []Export{{1, "/volumes/0/unet3d", "/unet3d/0", []Client{trusted(t), everybody}, nil, false}}
		},
		"every access and squash": func(t *testing.T, c *Config) {
			export := Export{7, "/volumes/0/mixed", "/mixed/0", []Client{trusted(t)}, nil, false}
			for _, access := range []Access{ReadWrite, ReadOnly} {
				for _, squash := range []Squash{SquashNone, SquashRoot, SquashAll} {
					export.Clients = append(export.Clients, Client{[]netip.Prefix{address(t, "10.0.0.0/8")}, access, squash, squash == SquashRoot})
				}
			}
			c.Exports = []Export{export}
		},
		"three volumes and two shares, in the order of ids": func(t *testing.T, c *Config) {
			c.Exports = []Export{
				{65535, "/volumes/1/b", "/b/1", []Client{trusted(t)}, nil, false},
				{2, "/volumes/1/a", "/a/1", []Client{trusted(t)}, nil, false},
				{300, "/volumes/0/b", "/b/0", []Client{trusted(t)}, nil, false},
				{1, "/volumes/0/a", "/a/0", []Client{trusted(t)}, nil, false},
				{3, "/volumes/2/a", "/a/2", []Client{trusted(t)}, nil, false},
			}
		},
		"addresses of both families": func(t *testing.T, c *Config) {
			client := Client{nil, ReadOnly, SquashRoot, true}
			for _, text := range []string{
				"192.168.7.9/16", "10.1.2.3", "::ffff:10.9.8.7", "::ffff:10.0.0.0/104", "2001:db8::17/64", "fd00::1", "::1",
			} {
				client.Addresses = append(client.Addresses, address(t, text))
			}
			c.Exports = []Export{{1, "/volumes/0/a", "/a/0", []Client{client}, nil, false}}
		},
		"addresses that count alone": func(t *testing.T, c *Config) {
			c.CountedAlone = []netip.Prefix{address(t, "fd00:7::/112"), address(t, "fd00:8::1")}
			c.Exports = []Export{{1, "/volumes/0/a", "/a/0", []Client{trusted(t)}, nil, false}}
		},
		"an export without clients": func(_ *testing.T, c *Config) {
			c.Exports = []Export{{1, "/volumes/0/a", "/a/0", nil, nil, false}}
		},
		"two shares in CephFS": func(t *testing.T, c *Config) {
			inCeph(c)
			c.Exports = []Export{
				{41, "/volumes/howdah/b/9c1e", "/b/0", []Client{trusted(t)}, &CephFS{"fs1", "howdah-8c5b-b"}, false},
				{40, "/volumes/howdah/a/77d0", "/a/0", []Client{trusted(t)}, &CephFS{"fs1", "howdah-8c5b-a"}, false},
			}
		},
		"a share whose clients wait": func(t *testing.T, c *Config) {
			c.Exports = []Export{
				{2, "", "/b/0", []Client{trusted(t)}, nil, true},
				{1, "/volumes/0/a", "/a/0", []Client{trusted(t)}, nil, false},
			}
		},
		"characters that are safe in quotes": func(_ *testing.T, c *Config) {
			c.ServerOwner = "; # } { ' $ % ä 日本 = EXPORT"
			c.Exports = []Export{{1, "/volumes/0/a b;#}'$%", "/a/0", nil, nil, false}}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			config := server()
			change(t, &config)
			got, err := Render(config)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".conf")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
			assertReadsBack(t, config, got)
		})
	}
}

func TestWhatCannotBeCarriedSafelyIsRefused(t *testing.T) {
	export := func(change func(*Export)) func(*Config) {
		return func(c *Config) {
			e := Export{1, "/volumes/0/a", "/a/0", []Client{{[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, ReadWrite, SquashNone, false}}, nil, false}
			change(&e)
			c.Exports = []Export{e}
		}
	}
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"a double quote ends the string":         {func(c *Config) { c.ServerOwner = `a"; Enable_NLM = true; x = "` }, "can't carry"},
		"a backslash swallows the closing quote": {func(c *Config) { c.ServerScope = `a\` }, "can't carry"},
		"a newline":                              {func(c *Config) { c.ServerScope = "a\nb" }, "can't carry"},
		"a NUL":                                  {func(c *Config) { c.ServerScope = "a\x00" }, "can't carry"},
		"a C1 control character":                 {func(c *Config) { c.ServerScope = "a\u0085b" }, "can't carry"},
		"bytes that are not UTF-8":               {func(c *Config) { c.ServerScope = "a\xff" }, "not UTF-8"},
		"an empty owner":                         {func(c *Config) { c.ServerOwner = "" }, "empty"},
		"an owner longer than the protocol's":    {func(c *Config) { c.ServerOwner = strings.Repeat("a", 1025) }, "longer"},
		"a relative recovery directory":          {func(c *Config) { c.RecoveryRoot = "ganesha" }, "absolute"},
		"a path with two dots":                   {export(func(e *Export) { e.Path = "/volumes/../etc" }), "clean"},
		"a pseudo path with a slash at its end":  {export(func(e *Export) { e.Pseudo = "/a/0/" }), "clean"},
		"the pseudo root":                        {export(func(e *Export) { e.Pseudo = "/" }), "pseudo root"},
		"id 0":                                   {export(func(e *Export) { e.ID = 0 }), "Export_Id 0"},
		"no lease":                               {func(c *Config) { c.LeaseSeconds = 0 }, "Lease_Lifetime"},
		"a grace shorter than the lease":         {func(c *Config) { c.GraceSeconds = 9 }, "Grace_Period"},
		"an unknown access":                      {export(func(e *Export) { e.Clients[0].Access = "RW; Squash = None" }), "Access_Type"},
		"an unknown squash":                      {export(func(e *Export) { e.Clients[0].Squash = "" }), "Squash"},
		"a rule without addresses lets all in":   {export(func(e *Export) { e.Clients[0].Addresses = nil }), "no addresses"},
		"an address that is no address":          {export(func(e *Export) { e.Clients[0].Addresses = []netip.Prefix{{}} }), "not valid"},
		"no recovery root":                       {func(c *Config) { c.RecoveryRoot = "" }, "RecoveryRoot is empty"},
		"two places for clients":                 {func(c *Config) { root := c.RecoveryRoot; inCeph(c); c.RecoveryRoot = root }, "RecoveryRoot is set, too"},
		"no recovery user":                       {func(c *Config) { inCeph(c); c.Ceph.RecoveryUser = "" }, "userid is empty"},
		"a recovery namespace with a quote":      {func(c *Config) { inCeph(c); c.Ceph.RecoveryNamespace = `a"` }, "can't carry"},
		"an export in CephFS without a cluster":  {export(func(e *Export) { e.CephFS = &CephFS{"fs1", "a"} }), "names no Ceph cluster"},
		"a Ceph user longer than ganesha takes":  {inCephFS("fs1", strings.Repeat("a", 65)), "longer"},
		"a file system with a quote":             {inCephFS(`fs1"`, "a"), "can't carry"},
		"two shares with one Ceph user":          {inCephFS("fs1", "a", "a"), "give each its own"},
		"two exports with an id": {func(c *Config) {
			c.Exports = []Export{{1, "/v/a", "/a/0", nil, nil, false}, {1, "/v/b", "/b/0", nil, nil, false}}
		}, "used twice"},
		"two exports with a pseudo path": {func(c *Config) {
			c.Exports = []Export{{1, "/v/a", "/a/0", nil, nil, false}, {2, "/v/b", "/a/0", nil, nil, false}}
		}, "used twice"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			config := server()
			tc.change(&config)
			text, err := Render(config)
			if err == nil {
				t.Fatalf("rendered:\n%s", text)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v does not say %q", err, tc.want)
			}
		})
	}
}

// inCephFS makes an export for each of the users.
func inCephFS(fileSystem string, users ...string) func(*Config) {
	return func(c *Config) {
		inCeph(c)
		for i, user := range users {
			path := fmt.Sprintf("/%d", i+1)
			c.Exports = append(c.Exports, Export{ID: uint16(i + 1), Path: path, Pseudo: path, CephFS: &CephFS{fileSystem, user}})
		}
	}
}

func TestAddressesOfTheAPIAreReadAsGaneshaComparesThem(t *testing.T) {
	tests := map[string]string{
		"10.1.2.3": "10.1.2.3/32", "10.1.2.3/8": "10.0.0.0/8", "0.0.0.0/0": "0.0.0.0/0", "fd00::1": "fd00::1/128",
		"2001:DB8::1/32": "2001:db8::/32", "::ffff:10.1.2.3": "10.1.2.3/32", "::ffff:10.1.2.3/104": "10.0.0.0/8", "::ffff:0.0.0.0/90": "::ffc0:0:0/90",
	}
	for text, want := range tests {
		if got := address(t, text).String(); got != want {
			t.Errorf("%s is read as %s, not %s", text, got, want)
		}
	}
	for _, text := range []string{"", "host", "10.0.0.0/33", "10.0.0.0/08", "fe80::1%eth0", "10.0.0.0/8, 11.0.0.0/8", "*", "@group", "10.0.0.0/8;"} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("%q was accepted as %s", text, got)
		}
	}
}

// assertReadsBack reads the text and compares all of it with the model: every value is where it belongs, and there is nothing else.
func assertReadsBack(t testing.TB, config Config, text string) {
	t.Helper()
	got, err := ganeshatest.Parse(text)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	want := config
	want.Port, want.MonitoringPort = cmp.Or(want.Port, 2049), cmp.Or(want.MonitoringPort, 9586)
	want.Limits = cmp.Or(want.Limits, LimitsFor(0))
	want.Exports = slices.Clone(want.Exports)
	slices.SortFunc(want.Exports, func(a, b Export) int { return int(a.ID) - int(b.ID) })
	if diff := gocmp.Diff(want, got, gocmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what was read back differs from the model: %s", diff)
	}
}

func FuzzNoValueBecomesADirective(f *testing.F) {
	f.Add("scope", "owner", "/volumes/0/a", "/a/0", "10.0.0.0/8", "RW", "No_Root_Squash", uint16(1), int32(10))
	f.Add(`a"; }`, `a\`, "/volumes/0/a\"", "/a/0\n}", "0.0.0.0/0 ; }", "RW; x = y", "None", uint16(0), int32(-1))
	f.Add("a#b", "'", "/;{}=", "/%include \"x\"", "::/0", "RO", "All_Squash", uint16(65535), int32(120))
	f.Fuzz(func(t *testing.T, scope, owner, path, pseudo, from, access, squash string, id uint16, seconds int32) {
		config := Config{ServerScope: scope, ServerOwner: owner, LeaseSeconds: seconds, GraceSeconds: seconds, RecoveryRoot: path}
		export := Export{ID: id, Path: path, Pseudo: pseudo}
		if prefix, err := ParseAddress(from); err == nil {
			export.Clients = []Client{{[]netip.Prefix{prefix}, Access(access), Squash(squash), id%2 == 1}}
		}
		config.Exports = []Export{export}
		for _, inCeph := range []bool{false, true} {
			if inCeph {
				config.RecoveryRoot, config.Ceph = "", &Ceph{path, owner, scope, owner, scope}
				config.Exports[0].CephFS = &CephFS{scope, owner}
			}
			if text, err := Render(config); err == nil {
				assertReadsBack(t, config, text)
			}
		}
	})
}

// Ganesha takes no export with an address twice in one block.
func TestAnAddressIsWrittenOnceForEachBlock(t *testing.T) {
	prefix := netip.MustParsePrefix
	config := Config{
		ServerScope: "scope", ServerOwner: "scope-0", LeaseSeconds: 10, GraceSeconds: 20, RecoveryRoot: "/volumes/0/.howdah/ganesha",
		Exports: []Export{{ID: 1, Path: "/volumes/0/a", Pseudo: "/a/0", Clients: []Client{{
			Access: ReadWrite, Squash: SquashNone,
			Addresses: []netip.Prefix{prefix("10.0.0.1/32"), prefix("10.0.7.0/24"), prefix("10.0.0.1/32"), prefix("10.0.7.9/24"), prefix("::ffff:10.0.0.1/128"), prefix("10.0.0.2/32")},
		}}}},
	}
	text, err := Render(config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "Clients = 10.0.0.1/32, 10.0.7.0/24, 10.0.0.2/32;") {
		t.Error(text)
	}
}

// The same networks in another order are no reload; IPv4 addresses count alone anyway.
func TestNetworksThatCountAloneAreWrittenOnceAndInOrder(t *testing.T) {
	config := server()
	for _, text := range []string{"fd00:9::1", "10.0.0.1/32", "fd00:8::7/127", "::ffff:10.0.0.2", "fd00:9::1", "fd00:8::6/127"} {
		config.CountedAlone = append(config.CountedAlone, address(t, text))
	}
	text, err := Render(config)
	if err != nil {
		t.Fatal(err)
	}
	if want := "GATE {\n  Counted_Alone = fd00:8::6/127, fd00:9::1/128;\n}\n"; !strings.Contains(text, want) {
		t.Errorf("%s\nhas no %s", text, want)
	}
	config.CountedAlone = config.CountedAlone[1:2]
	if text, err = Render(config); err != nil || strings.Contains(text, "GATE") {
		t.Errorf("with IPv4 alone: %v\n%s", err, text)
	}
}
