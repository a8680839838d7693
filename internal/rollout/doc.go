// Package rollout decides how a change of the data servers' pods reaches them: one data server at a time, only while all others serve and
// no client reclaims its state, and not beyond a data server that does not serve with its new pod. It also decides what counts as a change by
// the operator itself, of which one FileServer at a time begins. It is pure: Decide gets what was observed, and returns what to do.
//
// A data server that serves is stopped for another image only when its node has that image. An image that can't be pulled stops the rollout
// before it stops a data server.
//
// The StatefulSet's controller replaces no pod by itself: its partition is above every ordinal, so a pod that is lost meanwhile is made from
// the template that the rollout has not finished to replace. For the moment of a replacement the strategy is OnDelete, with which the next
// pod of that data server is made from the new template, whatever its ordinal is.
package rollout
