package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const registrationSocket = "/var/lib/kubelet/plugins_registry/" + driverName + "-reg.sock"

// serveNode serves the node plugin, and tells kubelet where it is.
func serveNode(ctx context.Context) error {
	n := &node{name: os.Getenv("NODE_NAME"), storage: os.Getenv("ADDRESS")}
	socket := os.Getenv("CSI_SOCKET")
	if n.name == "" || n.storage == "" || socket == "" {
		return errors.New("NODE_NAME, ADDRESS and CSI_SOCKET must be set")
	}
	failed := make(chan error, 2)
	go func() {
		failed <- serveSocket(ctx, socket, func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, identity{})
			csi.RegisterNodeServer(s, n)
		})
	}()
	go func() {
		failed <- serveSocket(ctx, registrationSocket, func(s *grpc.Server) {
			registration.RegisterRegistrationServer(s, registrar{socket: socket})
		})
	}()
	return <-failed
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	socket string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: driverName, Endpoint: r.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (registrar) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		log.Printf("kubelet does not take the plugin: %s", s.GetError())
	}
	return &registration.RegistrationStatusResponse{}, nil
}

type node struct {
	csi.UnimplementedNodeServer
	name, storage string
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{
		Rpc: &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME},
	}}}}, nil
}

func (n *node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := n.stage(ctx, r.GetVolumeId(), r.GetStagingTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// stage connects a volume, makes its file system if it has none, and mounts it.
func (n *node) stage(ctx context.Context, volume, target string) error {
	if mounted, err := isMountPoint(target); mounted || err != nil {
		return err
	}
	if old := deviceOf(volume); old != "" {
		// Of an earlier try. The storage may have cut it off since.
		if err := detachDevice(old); err != nil {
			return err
		}
	}
	device, err := n.attach(ctx, volume)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	isNew, err := isEmpty(device)
	if err != nil {
		return err
	}
	if isNew {
		if _, err := tool(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard,assume_storage_prezeroed=1", device); err != nil {
			return err
		}
	}
	_, err = tool(ctx, "mount", "-t", "ext4", "-o", "noatime,noinit_itable", device, target)
	return err
}

// isEmpty reports whether a device has nothing at its beginning, where ext4 has its superblock: then the volume is new. What can't be
// read is not empty, or a volume that fails for a moment would be formatted.
func isEmpty(device string) (bool, error) {
	file, err := os.Open(device)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	start := make([]byte, 64<<10)
	if _, err := io.ReadFull(file, start); err != nil {
		return false, fmt.Errorf("reading %s: %w", device, err)
	}
	return !slices.ContainsFunc(start, func(b byte) bool { return b != 0 }), nil
}

func (n *node) attach(ctx context.Context, volume string) (string, error) {
	connection, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", n.storage)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }() // The kernel has its own reference by then.
	e, err := connect(connection, volume, n.name)
	if err != nil {
		return "", err
	}
	file, err := connection.(*net.TCPConn).File()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	return attachDevice(volume, e, int(file.Fd()))
}

func (n *node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := unmount(ctx, r.GetStagingTargetPath()); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if device := deviceOf(r.GetVolumeId()); device != "" {
		if err := detachDevice(device); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (n *node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := r.GetTargetPath()
	mounted, err := isMountPoint(target)
	if err == nil && !mounted {
		if err = os.MkdirAll(target, 0o750); err == nil {
			_, err = tool(ctx, "mount", "--bind", r.GetStagingTargetPath(), target)
		}
	}
	if err == nil && r.GetReadonly() {
		_, err = tool(ctx, "mount", "-o", "remount,bind,ro", target)
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := r.GetTargetPath()
	err := unmount(ctx, target)
	if err == nil {
		err = os.Remove(target)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func unmount(ctx context.Context, path string) error {
	mounted, err := isMountPoint(path)
	if !mounted || err != nil {
		return err
	}
	_, err = tool(ctx, "umount", path)
	return err
}

func isMountPoint(path string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(table)) {
		// The fifth field is the mount point. kubelet's paths have nothing that is escaped there.
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == filepath.Clean(path) {
			return true, nil
		}
	}
	return false, nil
}

// tool runs a program of the node and returns what it printed.
func tool(ctx context.Context, name string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %q", name, strings.Join(args, " "), err, strings.TrimSpace(string(output)))
	}
	return strings.TrimSpace(string(output)), nil
}
