package limits

import (
	"cmp"
	"slices"
	"time"
)

// Demand is what a share has and wants of its FileServer.
type Demand struct {
	// Key tells shares apart; of shares of one age it is the order.
	Key string
	// Tenant is the Kubernetes namespace that it counts for.
	Tenant string
	// Created is when it was made: older shares come first.
	Created time.Time
	// Admitted: the limits have let it in, and Has is what it has. What was let in stays, whatever the limits are later.
	Admitted bool
	Has      Usage
	// Wants is what the share requests. It is not used for other shares that are admitted: what they have counts.
	Wants Usage
}

// Needs tells whether a share wants what it does not have.
func (d Demand) Needs() bool {
	return !d.Admitted || d.Wants.Directories > d.Has.Directories || d.Wants.AccessNetworks > d.Has.AccessNetworks
}

// Grant is what the limits give to a share.
type Grant struct {
	// Admitted is as in Demand, and Has what the share has from now on.
	Admitted bool
	Has      Usage
	// Refused is why it is not let in, nil if it is.
	Refused *Refusal
	// Directories and AccessNetworks are why a share that is let in can't have more of them, nil if it can.
	Directories, AccessNetworks *Refusal
}

// Admit gives a share what there is room for beside others. A share that has what it requests needs no check. One that is not let in
// comes after all that are, and after those that wait and are older; of these, one that does not fit takes no room from the others.
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

// grow gives a share that is let in what it wants of each, or leaves it what it has.
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
