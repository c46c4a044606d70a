package base

// Keys for slog attributes. Messages are constants; what varies goes under one of these keys.
const (
	KeyComponent = "component" // the part that speaks: "kubelet", "scheduler"
	KeyError     = "err"       // an error value
	KeyNamespace = "namespace" // an object's namespace
	KeyName      = "name"      // an object's name
	KeyKind      = "kind"      // an object's kind or resource
	KeyKey       = "key"       // namespace/name as one string
	KeyUID       = "uid"       // an object's UID
	KeyPod       = "pod"       // namespace/name of a pod
	KeyContainer = "container" // a container's name in its pod
	KeyID        = "id"        // a runtime's identifier: sandbox or container
	KeyNode      = "node"      // a node's name
	KeyImage     = "image"     // an image reference
	KeyRevision  = "revision"  // a store revision
	KeyAddress   = "address"   // an IP address or host:port
	KeyPath      = "path"      // a file system path
	KeyDuration  = "duration"  // how long a thing took
	KeyCount     = "count"     // how many
	KeyUser      = "user"      // an authenticated user's name
)
