package rollout

import "slices"

// Server is what is known of a data server and of its pod.
type Server struct {
	Name string
	// Made means that it has a pod, Outdated that the pod is not of the newest template, Ending that it is being stopped.
	Made, Outdated, Ending bool
	// Serves means that it serves from this pod. InGrace means that its clients still reclaim their state.
	Serves, InGrace bool
	// OnLostNode means that the pod's node is not ready: its kubelet does not confirm that the pod has ended.
	OnLostNode bool
	// Stuck is why it does not serve, if it will not by itself; "" otherwise.
	Stuck string
	// Waits is why it does not serve, whether or not it is stuck.
	Waits string
	// Held is why its pod must stay although it serves: the next one could not start; "" if it need not.
	Held string
	// NewImage means that its next pod has another image than its pod. Pull is how far its node is with that image, and Pulling says it in words.
	NewImage bool
	Pull     Pull
	Pulling  string
}

// Pull is how far a node is with the image of a data server's next pod.
type Pull string

const (
	// Pulled means that the node has the image, or that it can't be found out.
	Pulled Pull = ""
	// NotPulled means that the node does not have it yet.
	NotPulled Pull = "NotPulled"
	// CannotPull means that the node's kubelet tried, and could not.
	CannotPull Pull = "CannotPull"
)

// Input is all that a decision needs.
type Input struct {
	// Servers are the FileServer's data servers, by their ordinals.
	Servers []Server
	// Observed means that the StatefulSet's controller has seen what was applied last. Otherwise it is not known which pods are outdated.
	Observed bool
	// OnDelete means that the StatefulSet's strategy is OnDelete now.
	OnDelete bool
	// Complete means that all data servers were ready with the newest template once.
	Complete bool
	// HeldBy is another FileServer whose change must be done first; "" if this one may begin.
	HeldBy string
}

// State is how far a rollout is.
type State string

const (
	// Unknown means that nothing is known yet.
	Unknown State = ""
	// UpToDate means that there is nothing to do.
	UpToDate State = "UpToDate"
	// Rolling means that a data server is being replaced.
	Rolling State = "Rolling"
	// Waiting means that the next data server is replaced when something else is over.
	Waiting State = "Waiting"
	// Stopped means that a data server does not serve with its new pod, and the others keep theirs.
	Stopped State = "Stopped"
)

// Plan is what to do.
type Plan struct {
	State State
	// OnDelete is the strategy that the StatefulSet must have.
	OnDelete bool
	// Next is the data server whose pod is to be replaced; Now means that the StatefulSet is ready for that. Healing means that it does not
	// serve, so that its replacement takes nothing from anybody.
	Next         string
	Now, Healing bool
	// Outdated are the data servers with earlier pods.
	Outdated []string
	// Stuck is the data server at which a rollout is stopped.
	Stuck *Server
	// Pull is the data server whose node must pull the image of its next pod, if that is another one, before its pod goes, and as long as it has not
	// gone. Unpullable is set if the node can't: then the rollout is stopped, and took nothing from anybody.
	Pull       string
	Unpullable *Server
	// For are the data servers that a waiting rollout waits for, with what each waits for. Held are those that serve with pods that must stay.
	// HeldBy is the FileServer that it waits for.
	For, Held []Server
	HeldBy    string
}

// Decide decides what to do next.
func Decide(in Input) Plan {
	if !in.Observed {
		return Plan{OnDelete: in.OnDelete}
	}
	busy := slices.ContainsFunc(in.Servers, func(s Server) bool { return !s.Made || s.Ending })
	// The pod that takes the place of one that ends must be of the new template.
	plan := Plan{OnDelete: in.OnDelete && busy}
	var blockers []Server
	stuck, broken, healthy := -1, -1, -1
	for i, s := range in.Servers {
		switch {
		case s.Outdated:
			plan.Outdated = append(plan.Outdated, s.Name)
			switch {
			case !s.Serves && s.Stuck != "" && !s.Ending && !s.OnLostNode:
				broken = i
			case s.Serves && !s.Ending && s.Held != "":
				plan.Held = append(plan.Held, s)
			case s.Serves && !s.Ending:
				healthy = i
			}
		// On a lost node the new pod is not to blame, and the earlier one would not serve either.
		case s.Stuck != "" && !s.Serves && !s.OnLostNode:
			stuck = i
		}
		if !s.Made || s.Ending || !s.Serves || s.InGrace {
			blockers = append(blockers, s)
		}
	}
	switch {
	case stuck >= 0 && (len(plan.Outdated) > 0 || !in.Complete):
		plan.State, plan.Stuck = Stopped, &in.Servers[stuck]
	case broken >= 0 && !isTried(in.Servers):
		return plan.replace(in, in.Servers[broken].Name, true)
	case len(plan.Outdated) == 0:
		plan.State = UpToDate
		if !in.Complete && len(blockers) > 0 {
			plan.State, plan.For = Rolling, blockers
		}
	case len(blockers) > 0:
		plan.State, plan.For = Waiting, blockers
		if slices.ContainsFunc(blockers, func(s Server) bool { return !s.Outdated || s.Ending }) {
			plan.State = Rolling
		}
	case in.HeldBy != "":
		plan.State, plan.HeldBy = Waiting, in.HeldBy
	case healthy < 0:
		plan.State = Waiting
	default:
		return plan.replaceHealthy(in, &in.Servers[healthy])
	}
	return plan
}

// replaceHealthy replaces the pod of a data server that serves, once its node has the image of the next one: the pull is no part of the outage,
// and an image that can't be pulled stops no data server.
func (p Plan) replaceHealthy(in Input, s *Server) Plan {
	if s.NewImage {
		p.Pull = s.Name
	}
	switch s.Pull {
	case CannotPull:
		p.State, p.Unpullable = Stopped, s
	case NotPulled:
		p.State, p.For = Rolling, []Server{{Name: s.Name, Waits: s.Pulling}}
	default:
		return p.replace(in, s.Name, false)
	}
	return p
}

// isTried tells whether the newest template is being tried by one data server, and none serves with it yet. If all are down, for example with
// their storage, they don't all get a template that may be bad.
func isTried(servers []Server) bool {
	serves := slices.ContainsFunc(servers, func(s Server) bool { return s.Made && !s.Outdated && s.Serves })
	return !serves && slices.ContainsFunc(servers, func(s Server) bool {
		return (!s.Made || s.Ending || !s.Outdated && !s.Serves) && !s.OnLostNode
	})
}

// replace is the plan that replaces the pod of a data server. The StatefulSet must have the strategy OnDelete before the pod goes.
func (p Plan) replace(in Input, server string, healing bool) Plan {
	p.State, p.Next, p.Healing, p.OnDelete, p.Now = Rolling, server, healing, true, in.OnDelete
	return p
}
