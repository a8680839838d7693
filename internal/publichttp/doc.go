// Package publichttp serves HTTP at ports without authentication: probes, metrics and figures of servers' pods. It limits
// connections, requests, answers and times, in total and for each address. Addresses that send probes have reserved
// connections. Of Howdah the package imports nothing but internal/subnet, which says what counts as one address.
package publichttp
