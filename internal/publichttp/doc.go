// Package publichttp serves HTTP at ports without authentication: probes, metrics and figures of servers' pods. It limits
// connections, requests, answers and times, in total and for each address. Addresses that send probes have reserved
// connections. The package imports nothing of Howdah.
package publichttp
