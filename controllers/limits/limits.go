package limits

import (
	"cmp"
	"fmt"
	"math"

	"github.com/howdah/howdah/api/v1alpha1"
)

// Defaults of spec.limits (docs/operate/sizing.md). A namespace server and an operator with 512Mi each can hold 100,000
// directories. A data server reads the access networks of a share once for each of its exports; 131,072 take some
// seconds.
const (
	defaultDirectories    = 100_000
	defaultAccessNetworks = 131_072

	defaultSharesPerNamespace         = 512
	defaultDirectoriesPerNamespace    = 20_000
	defaultAccessNetworksPerNamespace = 16_384
)

// Usage is what shares use of the limits.
type Usage struct{ Shares, Directories, AccessNetworks int }

// Plus is the sum of two.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Shares + v.Shares, u.Directories + v.Directories, u.AccessNetworks + v.AccessNetworks}
}

// Minus is the difference of two.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Shares - v.Shares, u.Directories - v.Directories, u.AccessNetworks - v.AccessNetworks}
}

// Caps are the limits of a FileServer.
type Caps struct {
	// FileServer and Namespace are its name and its Kubernetes namespace. PerNamespace does not apply to that
	// namespace.
	FileServer, Namespace string
	// Total is for all shares, PerNamespace for those of each Kubernetes namespace.
	Total, PerNamespace Usage
}

// Of returns the limits of a FileServer, with defaults filled in. maxShares is the maximum number of shares,
// exportsPerShare the number of exports of each share on a data server.
func Of(fs *v1alpha1.FileServer, maxShares int, exportsPerShare int32) Caps {
	total, per := fs.Spec.Limits.Total, fs.Spec.Limits.PerNamespace
	return Caps{
		FileServer: fs.Name, Namespace: fs.Namespace,
		Total: Usage{
			Shares:         min(cmp.Or(int(total.Shares), maxShares), maxShares),
			Directories:    cmp.Or(int(total.Directories), defaultDirectories),
			AccessNetworks: cmp.Or(int(total.AccessNetworks), defaultAccessNetworks/int(exportsPerShare)),
		},
		PerNamespace: Usage{
			Shares:         cmp.Or(int(per.Shares), defaultSharesPerNamespace),
			Directories:    cmp.Or(int(per.Directories), defaultDirectoriesPerNamespace),
			AccessNetworks: cmp.Or(int(per.AccessNetworks), defaultAccessNetworksPerNamespace/int(exportsPerShare)),
		},
	}
}

// of are the limits of a tenant.
func (c Caps) of(tenant string) Usage {
	if tenant == c.Namespace {
		return Usage{math.MaxInt, math.MaxInt, math.MaxInt}
	}
	return c.PerNamespace
}

// AccessNetworks is the number of client entries in access rules. No rules count as one entry: Nodes.
func AccessNetworks(rules []v1alpha1.AccessRule) int {
	n := 0
	for i := range rules {
		n += len(rules[i].Clients)
	}
	return max(1, n)
}

// Refusal is a limit that is reached.
type Refusal struct {
	// Tenant is the Kubernetes namespace whose limit it is; "" if it is that of all shares.
	Tenant string
	// Field is the field of the FileServer to raise, and Unit what it counts.
	Field, Unit string
	// Limit is its value, Others what other shares use, and Wanted what the share would use.
	Limit, Others, Wanted int
}

// Message describes the refusal and what to do, for the owner of the share.
func (r *Refusal) Message(fileServer string) string {
	whose := "all shares together"
	if r.Tenant != "" {
		whose = fmt.Sprintf("the shares of namespace %s together", r.Tenant)
	}
	wants := fmt.Sprintf("this one would have %d", r.Wanted)
	if r.Unit == unitShares {
		wants = "this one is newer"
	}
	return fmt.Sprintf("FileServer %s allows %s %d %s (%s); others have %d and %s: ask the administrator of the FileServer to raise %s, or make room",
		fileServer, whose, r.Limit, r.Unit, r.Field, r.Others, wants, r.Field)
}

// Units of limits.
const (
	unitShares         = "shares"
	unitDirectories    = "directories"
	unitAccessNetworks = "access networks"
)

// Taken is what shares use, in total and by tenant.
type Taken struct {
	Total    Usage
	ByTenant map[string]Usage
}

// Add counts what a share of a tenant has.
func (t *Taken) Add(tenant string, u Usage) {
	if t.ByTenant == nil {
		t.ByTenant = map[string]Usage{}
	}
	t.Total, t.ByTenant[tenant] = t.Total.Plus(u), t.ByTenant[tenant].Plus(u)
}

// Remove takes back what Add counted.
func (t *Taken) Remove(tenant string, u Usage) {
	t.Total = t.Total.Minus(u)
	if left := t.ByTenant[tenant].Minus(u); left == (Usage{}) {
		delete(t.ByTenant, tenant)
	} else {
		t.ByTenant[tenant] = left
	}
}

// Plus is the sum of two. It shares nothing with them.
func (t *Taken) Plus(other Taken) Taken {
	sum := Taken{Total: t.Total.Plus(other.Total), ByTenant: make(map[string]Usage, len(t.ByTenant)+len(other.ByTenant))}
	for _, of := range []map[string]Usage{t.ByTenant, other.ByTenant} {
		for tenant, u := range of {
			sum.ByTenant[tenant] = sum.ByTenant[tenant].Plus(u)
		}
	}
	return sum
}

// Shares returns why a share of a tenant exceeds the limit, given what other shares use; nil if it does not.
func (c Caps) Shares(others *Taken, tenant string, wanted int) *Refusal {
	return c.check(others, tenant, wanted, unitShares, "shares", func(u Usage) int { return u.Shares })
}

// Directories is Shares of directories.
func (c Caps) Directories(others *Taken, tenant string, wanted int) *Refusal {
	return c.check(others, tenant, wanted, unitDirectories, "directories", func(u Usage) int { return u.Directories })
}

// AccessNetworks is Shares of access networks.
func (c Caps) AccessNetworks(others *Taken, tenant string, wanted int) *Refusal {
	return c.check(others, tenant, wanted, unitAccessNetworks, "accessNetworks", func(u Usage) int { return u.AccessNetworks })
}

// Fits returns the first limit that a share of a tenant exceeds; nil if there is none.
func (c Caps) Fits(others *Taken, tenant string, wanted Usage) *Refusal {
	return cmp.Or(c.Shares(others, tenant, wanted.Shares), c.Directories(others, tenant, wanted.Directories), c.AccessNetworks(others, tenant, wanted.AccessNetworks))
}

func (c Caps) check(others *Taken, tenant string, wanted int, unit, field string, of func(Usage) int) *Refusal {
	if limit, has := of(c.of(tenant)), of(others.ByTenant[tenant]); wanted > limit-has {
		return &Refusal{Tenant: tenant, Field: "spec.limits.perNamespace." + field, Unit: unit, Limit: limit, Others: has, Wanted: wanted}
	}
	if limit, has := of(c.Total), of(others.Total); wanted > limit-has {
		return &Refusal{Field: "spec.limits.total." + field, Unit: unit, Limit: limit, Others: has, Wanted: wanted}
	}
	return nil
}
