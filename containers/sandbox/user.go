package sandbox

import (
	"errors"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/namespace"
)

// planUser says which IDs a pod's user namespace has, nil for the machine's own
// (KEP-127). The kubelet chooses them, one range that begins with root.
func planUser(ns *runtimeapi.NamespaceOption) (*namespace.User, error) {
	o := ns.GetUsernsOptions()
	if o == nil {
		return nil, nil
	}
	switch o.GetMode() {
	case runtimeapi.NamespaceMode_NODE:
		return nil, nil
	case runtimeapi.NamespaceMode_POD:
	default:
		return nil, fmt.Errorf("user namespaces of mode %s are not supported, only POD and NODE", o.GetMode())
	}
	if ns.GetNetwork() == runtimeapi.NamespaceMode_NODE || ns.GetIpc() == runtimeapi.NamespaceMode_NODE || ns.GetPid() == runtimeapi.NamespaceMode_NODE {
		return nil, errors.New("a user namespace cannot be combined with the node's network, IPC or PID namespace")
	}
	if err := namespace.UsersSupported(); err != nil {
		return nil, fmt.Errorf("user namespaces are not supported: %w", err)
	}
	uids, err := oneRange("UID", o.GetUids())
	if err != nil {
		return nil, err
	}
	gids, err := oneRange("GID", o.GetGids())
	if err != nil {
		return nil, err
	}
	return &namespace.User{UID: uids.GetHostId(), UIDs: uids.GetLength(), GID: gids.GetHostId(), GIDs: gids.GetLength()}, nil
}

func oneRange(kind string, list []*runtimeapi.IDMapping) (*runtimeapi.IDMapping, error) {
	switch {
	case len(list) != 1:
		return nil, fmt.Errorf("user namespace: %d %s mappings are given, exactly one is supported", len(list), kind)
	case list[0].GetContainerId() != 0:
		return nil, fmt.Errorf("user namespace: the %s mapping begins with %d, it must begin with 0", kind, list[0].GetContainerId())
	case list[0].GetLength() == 0:
		return nil, fmt.Errorf("user namespace: the %s mapping is empty", kind)
	}
	return list[0], nil
}

// root is who on the machine is the pod's root.
func (s *Sandbox) root() (uid, gid uint32) {
	if s.User == nil {
		return 0, 0
	}
	return s.User.UID, s.User.GID
}
