package owners

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/howdah/howdah/api/v1alpha1"
	"github.com/howdah/howdah/internal/mtls"
	nfs "github.com/howdah/howdah/internal/nfs4/client"
)

// Dial makes a connection with the data server at an address, over which it trusts this server.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// MutualTLS connects to the TLS port of data servers, with the certificates of a namespace server. name is that in the
// certificate of the data server at an address; "" if there is none.
func MutualTLS(identities []*mtls.Identity, name func(address string) string) Dial {
	return func(ctx context.Context, address string) (net.Conn, error) {
		server := name(address)
		if server == "" {
			return nil, &nfs.RPCError{Reason: "no DataServer has this address, so the name that its certificate must have is not known"}
		}
		dialer := tls.Dialer{Config: mtls.ClientConfig(identities, server, time.Now)}
		conn, err := dialer.DialContext(ctx, "tcp", endpoint(address, v1alpha1.NFSTLSPort))
		if wrong := new(tls.CertificateVerificationError); errors.As(err, &wrong) {
			return nil, &nfs.RPCError{Reason: wrong.Error()} // Trying again at once would not help.
		}
		if err != nil {
			return nil, fmt.Errorf("connect to the TLS port: %w", err)
		}
		return conn, nil
	}
}

// endpoint is a port of an address. An address with a port is taken as it is.
func endpoint(address string, port int) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(port))
}
