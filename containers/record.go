package containers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/sandbox"
)

// phase is how far a sandbox is in its life, as recorded.
type phase string

const (
	phaseMaking  phase = "making" // a crash here leaves things to be destroyed
	phaseReady   phase = "ready"
	phaseStopped phase = "stopped"
)

// sandboxRecord is sandbox.json.
type sandboxRecord struct {
	ID        string           `json:"id"`
	Phase     phase            `json:"phase"`
	CreatedAt time.Time        `json:"createdAt"`
	Handler   string           `json:"handler,omitempty"`
	Pause     bool             `json:"pause,omitempty"` // it has a container of its own ID that holds its PID namespace
	Config    []byte           `json:"config"`          // PodSandboxConfig as protobuf
	Sandbox   *sandbox.Sandbox `json:"sandbox"`
}

type podSandbox struct {
	op     sync.Mutex // held by what changes the sandbox: run, stop, remove
	config *runtimeapi.PodSandboxConfig

	mu  sync.Mutex // guards what follows
	rec sandboxRecord
}

func (s *podSandbox) phase() phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rec.Phase
}

// containerRecord is container.json: what does not change once a container has
// been made, except Resources and Failure.
type containerRecord struct {
	ID         string         `json:"id"`
	SandboxID  string         `json:"sandboxID"`
	CreatedAt  time.Time      `json:"createdAt"`
	Pause      bool           `json:"pause,omitempty"`
	Config     []byte         `json:"config"` // ContainerConfig as protobuf
	Image      string         `json:"image"`  // name shown in the status
	ImageID    string         `json:"imageID"`
	ImageRef   string         `json:"imageRef"`
	LogPath    string         `json:"logPath,omitempty"`
	CgroupPath string         `json:"cgroupPath"`
	StopSignal syscall.Signal `json:"stopSignal"`
	Process    *specs.Process `json:"process"`
	Volumes    []string       `json:"volumes,omitempty"`   // keys of image volumes in Snapshots
	Resources  []byte         `json:"resources,omitempty"` // LinuxContainerResources as protobuf
	Failure    *failure       `json:"failure,omitempty"`
}

// failure is a start that did not succeed.
type failure struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

type container struct {
	op     sync.Mutex // held by what changes the container: start, update, remove
	config *runtimeapi.ContainerConfig
	exited chan struct{} // closed when state becomes CONTAINER_EXITED

	mu         sync.Mutex // guards what follows
	rec        containerRecord
	resources  *runtimeapi.LinuxContainerResources
	state      runtimeapi.ContainerState
	starting   bool // the monitor has been asked to start it
	ending     bool // its end is being dealt with
	early      *exit
	pid        int
	startedAt  time.Time
	finishedAt time.Time
	exitCode   int32
	reason     string
	message    string
}

func newContainer(rec containerRecord, config *runtimeapi.ContainerConfig) *container {
	c := &container{
		config: config, rec: rec, exited: make(chan struct{}),
		resources: config.GetLinux().GetResources(),
	}
	if rec.Resources != nil {
		var res runtimeapi.LinuxContainerResources
		if proto.Unmarshal(rec.Resources, &res) == nil {
			c.resources = &res
		}
	}
	if f := rec.Failure; f != nil {
		c.failLocked(*f)
	}
	return c
}

// failLocked puts the container into the state of one that could not be started.
func (c *container) failLocked(f failure) {
	c.state = runtimeapi.ContainerState_CONTAINER_EXITED
	c.startedAt, c.finishedAt = f.At, f.At
	c.exitCode, c.reason, c.message = startErrorCode, "StartError", f.Message
	close(c.exited)
}

// startErrorCode is the exit code of what could not be started, as with containerd.
const startErrorCode = 128

func (c *container) snapshotState() (state runtimeapi.ContainerState, pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.pid
}

func (s *podSandbox) save(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return writeRecord(filepath.Join(dir, "sandbox.json"), s.rec)
}

func (c *container) save(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return writeRecord(filepath.Join(dir, "container.json"), c.rec)
}

// writeRecord replaces a file at once. It is not synced: after a power loss
// nothing that the record describes is alive, and a record that cannot be read
// means that its directory is removed.
func writeRecord(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// load reads all records. Whether containers run is for the monitor to say.
func (r *Runtime) load() error {
	err := eachRecord(r.sandboxDir(""), "sandbox.json", func(dir string, b []byte) error {
		var rec sandboxRecord
		var config runtimeapi.PodSandboxConfig
		if err := decode(b, &rec, func() []byte { return rec.Config }, &config); err != nil || rec.ID != filepath.Base(dir) {
			return errBadRecord(err)
		}
		s := &podSandbox{config: &config, rec: rec}
		r.sandboxes[rec.ID] = s
		r.names[sandboxName(&config)] = rec.ID
		return nil
	}, r.dropRecord)
	if err != nil {
		return err
	}
	return eachRecord(r.containerDir(""), "container.json", func(dir string, b []byte) error {
		var rec containerRecord
		var config runtimeapi.ContainerConfig
		if err := decode(b, &rec, func() []byte { return rec.Config }, &config); err != nil || rec.ID != filepath.Base(dir) {
			return errBadRecord(err)
		}
		c := newContainer(rec, &config)
		r.containers[rec.ID] = c
		if !rec.Pause {
			r.names[containerName(rec.SandboxID, &config)] = rec.ID
		}
		return nil
	}, r.dropRecord)
}

func errBadRecord(err error) error {
	if err == nil {
		err = fmt.Errorf("its ID is not the name of its directory")
	}
	return err
}

// dropRecord removes a directory without a usable record: one that was being
// made or removed when the power failed.
func (r *Runtime) dropRecord(dir string, cause error) {
	r.log.Warn("removing an unreadable record", base.KeyPath, dir, base.KeyError, cause)
	ctx := context.Background()
	_ = r.cfg.Snapshots.Unmount(ctx, filepath.Join(dir, "rootfs"))
	_ = r.cfg.Snapshots.Remove(ctx, filepath.Base(dir))
	if err := os.RemoveAll(dir); err != nil {
		r.log.Warn("cannot remove it", base.KeyPath, dir, base.KeyError, err)
	}
}

func eachRecord(dir, name string, read func(dir string, b []byte) error, drop func(dir string, cause error)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		sub := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(filepath.Join(sub, name))
		if err == nil {
			err = read(sub, b)
		}
		if err != nil {
			drop(sub, err)
		}
	}
	return nil
}

func decode(b []byte, rec any, config func() []byte, m proto.Message) error {
	if err := json.Unmarshal(b, rec); err != nil {
		return err
	}
	return proto.Unmarshal(config(), m)
}

// newID returns 64 hex digits, the form that people know from Docker.
func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Names that may exist only once: a pod's sandbox per attempt, and a sandbox's
// container per attempt.
func sandboxName(c *runtimeapi.PodSandboxConfig) string {
	m := c.GetMetadata()
	return fmt.Sprintf("%s_%s_%s_%d", m.GetName(), m.GetNamespace(), m.GetUid(), m.GetAttempt())
}

func containerName(sandboxID string, c *runtimeapi.ContainerConfig) string {
	m := c.GetMetadata()
	return fmt.Sprintf("%s_%d_%s", m.GetName(), m.GetAttempt(), sandboxID)
}
