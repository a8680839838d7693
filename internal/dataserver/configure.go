package dataserver

import (
	"github.com/howdah/howdah/internal/dataserver/durable"
	"github.com/howdah/howdah/internal/ganesha"
)

// mountsFile is beside the configuration. It tells ganesha which shares it can mount side by side.
func mountsFile(configFile string) string { return configFile + ".mounts" }

// configure writes what ganesha reads when it starts: the configuration, whose text is given, and which of its exports are mounted side by
// side. A start between the two mounts one too few or too many, which it makes up for.
func (m *manager) configure(config ganesha.Config, text string) error {
	if err := durable.Write(mountsFile(m.configFile), ganesha.Mounts(config)); err != nil {
		return err
	}
	return durable.Write(m.configFile, []byte(text))
}
