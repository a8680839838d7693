//go:build tools

package attacher

import _ "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher" // hack/lab/internal/cache builds it.
