package namespace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/howdah/howdah/internal/nfs4/rpc"
	"github.com/howdah/howdah/internal/nfs4/session"
)

func TestLimitsFollowTheMemory(t *testing.T) {
	type limits struct{ connections, requests, clients, sessions, buffers, replies, cached int }
	for name, test := range map[string]struct {
		memory int64
		given  rpc.Limits
		want   limits
	}{
		"128 MiB":                {128 << 20, rpc.Limits{}, limits{1024, 256, 1024, 1024, 2 << 20, 4 << 20, 4 << 20}},
		"512 MiB, the default":   {512 << 20, rpc.Limits{}, limits{4096, 1024, 4096, 4096, 8 << 20, 16 << 20, 16 << 20}},
		"no limit":               {0, rpc.Limits{}, limits{4096, 1024, 4096, 4096, 8 << 20, 16 << 20, 16 << 20}},
		"2 GiB":                  {2 << 30, rpc.Limits{}, limits{16384, 1024, 16384, 16384, 32 << 20, 64 << 20, 64 << 20}},
		"what is given stays":    {128 << 20, rpc.Limits{Connections: 7}, limits{7, 256, 1024, 1024, 2 << 20, 4 << 20, 4 << 20}},
		"connections have a top": {16 << 30, rpc.Limits{}, limits{32768, 1024, 131072, 131072, 256 << 20, 512 << 20, 512 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			calls, sessions := test.given, session.Limits{}
			limitsFor(test.memory, &calls, &sessions)
			got := limits{
				calls.Connections, calls.Requests, sessions.Clients, sessions.Sessions, calls.BufferBytes, calls.ReplyBytes, sessions.CachedBytes,
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(limits{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
