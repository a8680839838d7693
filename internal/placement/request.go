package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// MaxRequests is how many moves can be asked for at a time.
	MaxRequests = 500
	// maxText is how many bytes a list of them can have: annotations of an object have 256 KiB together, and clients give directories names.
	maxText = 128 << 10
)

// Request is a move that a user asks for: an entry of the list that kubectl howdah writes, and the operator reads.
type Request struct {
	// Share is the FileShare's name; NAMESPACE.NAME for one of another Kubernetes namespace than the FileServer's.
	Share string `json:"share"`
	// Path is the directory's path below the share's root; "." is the whole of a share of layout Single.
	Path string `json:"path"`
	// To is the name of the data server.
	To string `json:"to"`
	// Clients is Follow if clients that use the directory are to go to its new data server, too. Unset: they stay where they are until they have
	// not used it for some minutes. On volumes all follow.
	Clients string `json:"clients,omitempty"`
}

// Follow is Request.Clients.
const Follow = "Follow"

// ParseRequests reads a list in JSON, [{"share": "unet3d", "path": "train/7", "to": "training-2"}]; "" is none.
func ParseRequests(text string) ([]Request, error) {
	if text == "" {
		return nil, nil
	}
	var requests []Request
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&requests); err != nil {
		return nil, fmt.Errorf("it is no list of {share, path, to} in JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the list")
	}
	if len(requests) > MaxRequests {
		return nil, fmt.Errorf("it asks for %d moves, and can ask for %d at a time", len(requests), MaxRequests)
	}
	for _, request := range requests {
		if request.Share == "" || request.Path == "" || request.To == "" {
			return nil, fmt.Errorf("an entry has no share, path or to: %+v", request)
		}
		if request.Clients != "" && request.Clients != Follow {
			return nil, fmt.Errorf("clients of an entry is %q: it can be %s, or left out", request.Clients, Follow)
		}
	}
	return requests, nil
}

// Fitting is how many of the requests, from the first one on, a list has room for.
func Fitting(requests []Request) int {
	size := len("[]")
	for i := range requests {
		size += len(FormatRequests(requests[i:i+1])) - len("[]") + len(",")
		if i == MaxRequests || size > maxText {
			return i
		}
	}
	return len(requests)
}

// FormatRequests is what ParseRequests reads.
func FormatRequests(requests []Request) string {
	if len(requests) == 0 {
		return ""
	}
	text, _ := json.Marshal(requests) // Texts alone: nothing of it can fail.
	return string(text)
}
