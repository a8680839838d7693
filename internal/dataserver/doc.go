// Package dataserver is the main process of a data server's container, `howdah
// server`: it turns its DataServer into ganesha.conf, prepares the
// volumes, allocates Export_Ids and keeps them beside the data, starts,
// supervises and reloads ganesha, answers the probes and reports the
// DataServer's status. At a port of its own it lets namespace servers in, by their certificates, and hands their calls on.
//
// It decides what is on a data server's volumes and when ganesha is started,
// reloaded and called ready. The text of the configuration is internal/ganesha's,
// names are internal/naming's. It must not import controllers.
package dataserver
