package main

import (
	"strings"
	"testing"
)

// A lab that is named without --name must not be taken for the usual one: down would remove that.
func TestCommandsOfALabTakeItsNameByFlagAlone(t *testing.T) {
	for name, command := range map[string]func([]string) error{
		"up": up, "down": down, "env": env, "status": status, "power-off": powerOff, "power-on": powerOn,
		"build": build, "assets": assets, "clients": clients, "nfs-server": nfsServer, "images": images,
	} {
		err := command([]string{"other"})
		if err == nil || !strings.Contains(err.Error(), `lab `+name+`: unexpected argument "other"; a lab is named by --name`) {
			t.Errorf("%s other: %v", name, err)
		}
	}
}
