package kubeapi

import "github.com/howdah/howdah/internal/dataserver/backend"

// usageSteps is in how many steps the use of a volume is reported.
const usageSteps = 64

// coarse rounds the use up to a step of 1/64 of the size. It keeps what was reported
// before while the real use is in that step or the upper quarter of the one below, so that
// writes and deletes around a border do not change the status each time.
func coarse(real, reported backend.Usage) backend.Usage {
	step := real.Total / usageSteps
	if step == 0 {
		return real
	}
	if reported.Total == real.Total && reported.Used%step == 0 &&
		real.Used <= reported.Used && real.Used > reported.Used-step-step/4 {
		return reported
	}
	steps := (real.Used + step - 1) / step
	return backend.Usage{Total: real.Total, Used: min(steps*step, real.Total)}
}
