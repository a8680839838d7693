package hostile

import (
	"testing"

	"github.com/howdah/howdah/internal/ganesha/realtest"
)

func TestMain(m *testing.M) { realtest.Main(m) }
