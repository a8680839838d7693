// Package publichttp serves HTTP at ports that whoever reaches them may ask: probes, metrics and figures of servers' pods. Every connection,
// request, answer and time is bounded, in all and for each address, and the addresses from which probes come have places of their own.
// It decides nothing about what is answered, and imports nothing of Howdah.
package publichttp
