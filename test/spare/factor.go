package spare

import (
	"fmt"
	"os"
	"strconv"
)

// factorVariable is the environment variable that TimeoutFactor reads.
const factorVariable = "HOWDAH_E2E_TIMEOUT_FACTOR"

// TimeoutFactor is the factor by which a measured time may miss its goal before a test fails: HOWDAH_E2E_TIMEOUT_FACTOR, at least 1,
// or otherwise if the variable is not set. A lab whose three nodes share two cores needs about 4.
func TimeoutFactor(otherwise float64) (float64, error) {
	text := os.Getenv(factorVariable)
	if text == "" {
		return otherwise, nil
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor < 1 {
		return 0, fmt.Errorf("%s=%q: want a number of at least 1", factorVariable, text)
	}
	return factor, nil
}
