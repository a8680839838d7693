package dataserver

import (
	"errors"
	"fmt"
	"strconv"

	internalv1 "github.com/howdah/howdah/api/internalapi/v1alpha1"
	"github.com/howdah/howdah/internal/dataserver/exportids"
)

// attributesOf are what an export's root should have.
func attributesOf(export internalv1.ShareExportSpec) (exportids.RootAttributes, error) {
	mode, err := strconv.ParseUint(export.Mode, 8, 12)
	if err != nil {
		return exportids.RootAttributes{}, fmt.Errorf("mode %q is not octal permission bits: %w", export.Mode, err)
	}
	if export.UID == nil || export.GID == nil {
		return exportids.RootAttributes{}, errors.New("owner and group must be set")
	}
	return exportids.RootAttributes{Owner: *export.UID, Group: *export.GID, Mode: strconv.FormatUint(mode, 8)}, nil
}
