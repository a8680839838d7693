package instance

import (
	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/instance/backend"
	"github.com/howdah/howdah/internal/instance/volumes"
)

// storageOf is the back end of a data server. Nothing else here knows which ones there are.
func (m *manager) storageOf(*internalv1.DataServer) backend.Backend {
	return volumes.New(m.volumesRoot, m.log)
}
