package limits

import (
	"cmp"
	"slices"
	"time"
)

// Demand is what a share uses of its FileServer's limits, and what it requests.
type Demand struct {
	// Key identifies the share. It decides the order of shares of the same age.
	Key string
	// Tenant is the Kubernetes namespace that it counts for.
	Tenant string
	// Created is the creation time: older shares come first.
	Created time.Time
	// Admitted: the share was admitted, and has Has. An admitted share stays admitted, whatever the limits are later.
	Admitted bool
	Has      Usage
	// Wants is what the share requests. Of other admitted shares, Has counts instead.
	Wants Usage
}

// Needs reports whether a share requests more than it has.
func (d Demand) Needs() bool {
	return !d.Admitted || d.Wants.Directories > d.Has.Directories || d.Wants.AccessNetworks > d.Has.AccessNetworks
}

// Grant is what the limits allow a share.
type Grant struct {
	// Admitted is as in Demand, and Has what the share has from now on.
	Admitted bool
	Has      Usage
	// Refused is why it is not admitted; nil if it is.
	Refused *Refusal
	// Directories and AccessNetworks are why an admitted share can't have more of them; nil if it can.
	Directories, AccessNetworks *Refusal
}

// Admit decides what a share gets in addition to what others have. A share that has what it requests needs no check. A
// share that is not admitted comes after all admitted ones and after older waiting ones. A waiting share that does not
// fit takes no room from others.
func (c Caps) Admit(own Demand, others []Demand, retained Taken) Grant {
	if !own.Needs() {
		return Grant{Admitted: true, Has: own.Wants}
	}
	taken := retained
	var waiting []Demand
	for i := range others {
		switch other := &others[i]; {
		case other.Admitted:
			taken.Add(other.Tenant, other.Has)
		case !own.Admitted && older(*other, own) < 0:
			waiting = append(waiting, *other)
		}
	}
	if own.Admitted {
		return c.grow(own, &taken)
	}
	slices.SortFunc(waiting, older)
	for i := range waiting {
		if c.Fits(&taken, waiting[i].Tenant, waiting[i].Wants) == nil {
			taken.Add(waiting[i].Tenant, waiting[i].Wants)
		}
	}
	if refused := c.Fits(&taken, own.Tenant, own.Wants); refused != nil {
		return Grant{Refused: refused}
	}
	return Grant{Admitted: true, Has: own.Wants}
}

// grow gives an admitted share what it requests of each kind, or leaves it what it has.
func (c Caps) grow(own Demand, taken *Taken) Grant {
	grant := Grant{Admitted: true, Has: own.Wants}
	if own.Wants.Directories > own.Has.Directories {
		if grant.Directories = c.Directories(taken, own.Tenant, own.Wants.Directories); grant.Directories != nil {
			grant.Has.Directories = own.Has.Directories
		}
	}
	if own.Wants.AccessNetworks > own.Has.AccessNetworks {
		if grant.AccessNetworks = c.AccessNetworks(taken, own.Tenant, own.Wants.AccessNetworks); grant.AccessNetworks != nil {
			grant.Has.AccessNetworks = own.Has.AccessNetworks
		}
	}
	return grant
}

func older(a, b Demand) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Key, b.Key)) }
