package ganesha

import "testing"

func TestLimitsFollowTheMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		memory int64
		want   Limits
	}{
		"nothing limits it": {0, Limits{4096, 1024, 2048, 4096, 256, 1024, 4096, 8}},
		"less than nothing": {-1, Limits{4096, 1024, 2048, 4096, 256, 1024, 4096, 8}},
		"very little":       {64 << 20, Limits{1024, 256, 512, 1024, 64, 256, 1024, 8}},
		"512 MiB":           {512 << 20, Limits{2048, 512, 1024, 2048, 128, 512, 2048, 8}},
		"1 GiB":             {1 << 30, Limits{4096, 1024, 2048, 4096, 256, 1024, 4096, 8}},
		"2 GiB":             {2 << 30, Limits{8192, 2048, 4096, 8192, 512, 2048, 8192, 8}},
		"4 GiB":             {4 << 30, Limits{16384, 4096, 8192, 16384, 1024, 4096, 16384, 8}},
		"very much":         {1 << 50, Limits{16384, 4096, 8192, 16384, 1024, 4096, 16384, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LimitsFor(tc.memory); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTheUsersConnectionsCount(t *testing.T) {
	for connections, want := range map[uint32]Limits{
		0:     {4096, 1024, 2048, 4096, 256, 1024, 4096, 8}, // Not set.
		64:    {64, 64, 64, 4096, 256, 1024, 4096, 8},       // The least that can be set: one address may have them all.
		100:   {100, 64, 64, 4096, 256, 1024, 4096, 8},
		65536: {65536, 16384, 32768, 4096, 256, 1024, 4096, 8},
	} {
		if got := LimitsFor(0).WithConnections(connections); got != want {
			t.Errorf("%d: %+v, want %+v", connections, got, want)
		}
	}
}

// What can be taken at most by what is reckoned fits into the memory, with five eighths of it left for everything else.
func TestTheLimitsFitIntoTheMemory(t *testing.T) {
	for memory := int64(256 << 20); memory <= 64<<30; memory *= 2 {
		limits := LimitsFor(memory)
		if taken := int64(limits.Connections)*connectionBytes + int64(limits.Sessions)*sessionBytes; taken > memory*3/8 {
			t.Errorf("%d MiB: clients can take %d MiB", memory>>20, taken>>20)
		}
		if limits.ClientsPerAddress*limits.SessionsPerClient > limits.Sessions/2 {
			t.Errorf("%d MiB: one address can have more than half of the sessions: %+v", memory>>20, limits)
		}
		if limits.ClientsPerNetwork+limits.SessionsPerClient > limits.Sessions/2 || limits.ConnectionsPerNetwork > limits.Connections/2 {
			t.Errorf("%d MiB: one network can have more than half: %+v", memory>>20, limits)
		}
	}
}
