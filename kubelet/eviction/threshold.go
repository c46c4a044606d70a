package eviction

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Signal is something that can run out.
type Signal string

// The signals.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available" // below the pods' common limit
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	ContainerFsAvailable       Signal = "containerfs.available"
	ContainerFsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// Resources that have no name in the API.
const (
	inodes corev1.ResourceName = "inodes"
	pids   corev1.ResourceName = "pids"
)

// Resource is what a signal tells of, "" for an unknown signal.
func (s Signal) Resource() corev1.ResourceName {
	switch s {
	case MemoryAvailable, AllocatableMemoryAvailable:
		return corev1.ResourceMemory
	case NodeFsAvailable, ImageFsAvailable, ContainerFsAvailable:
		return corev1.ResourceEphemeralStorage
	case NodeFsInodesFree, ImageFsInodesFree, ContainerFsInodesFree:
		return inodes
	case PIDAvailable:
		return pids
	}
	return ""
}

// Condition is the condition of the node that goes with a signal.
func (s Signal) Condition() corev1.NodeConditionType {
	switch s.Resource() {
	case corev1.ResourceMemory:
		return corev1.NodeMemoryPressure
	case pids:
		return corev1.NodePIDPressure
	}
	return corev1.NodeDiskPressure
}

// A Value is an amount, or a part of the capacity.
type Value struct {
	Quantity *resource.Quantity
	Part     float64 // 0.1 is 10 %; used without a Quantity
}

// Of is the amount for a capacity.
func (v Value) Of(capacity resource.Quantity) resource.Quantity {
	if v.Quantity != nil {
		return v.Quantity.DeepCopy()
	}
	return *resource.NewQuantity(int64(float64(capacity.Value())*v.Part), resource.BinarySI)
}

// A Threshold is met when less than Value is left.
type Threshold struct {
	Signal     Signal
	Value      Value
	Grace      time.Duration // how long it must be met; 0: a hard one
	MinReclaim *Value        // how much more than Value must be left for it to be over
}

// Config of eviction, in the form of upstream's fields.
type Config struct {
	Hard, Soft       map[string]string // signal: "100Mi" or "10%"
	SoftGracePeriod  map[string]string // signal: "1m30s"
	MinimumReclaim   map[string]string
	TransitionPeriod time.Duration // how long a condition stands at least
	MaxPodGrace      time.Duration // of pods that go for a soft threshold
}

// Defaults are upstream's.
func Defaults() Config {
	return Config{TransitionPeriod: 5 * time.Minute, Hard: map[string]string{
		"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%",
	}}
}

// Parse returns the thresholds, in a stable order. Its errors name the flags.
func Parse(c Config) ([]Threshold, error) {
	var out []Threshold
	var errs []error
	bad := func(flag, signal, value, allowed string) {
		errs = append(errs, fmt.Errorf("%s: %s<%s is not allowed: must be %s", flag, signal, value, allowed))
	}
	each := func(flag string, m map[string]string, f func(Signal, string)) {
		for _, name := range sorted(m) {
			if s := Signal(name); s.Resource() == "" || s == AllocatableMemoryAvailable {
				bad(flag, name, m[name], "of a signal like memory.available, nodefs.available, imagefs.inodesFree or pid.available")
			} else {
				f(s, m[name])
			}
		}
	}
	grace := map[Signal]time.Duration{}
	each("eviction-soft-grace-period", c.SoftGracePeriod, func(s Signal, text string) {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			bad("eviction-soft-grace-period", string(s), text, "a duration like 1m30s")
		}
		grace[s] = d
	})
	reclaim := map[Signal]Value{}
	each("eviction-minimum-reclaim", c.MinimumReclaim, func(s Signal, text string) {
		v, err := parseValue(text)
		if err != nil {
			bad("eviction-minimum-reclaim", string(s), text, err.Error())
		}
		reclaim[s] = v
	})
	add := func(flag string, m map[string]string, soft bool) {
		each(flag, m, func(s Signal, text string) {
			if text == "0%" || text == "100%" {
				return // switched off
			}
			v, err := parseValue(text)
			if err != nil {
				bad(flag, string(s), text, err.Error())
				return
			}
			t := Threshold{Signal: s, Value: v}
			if r, ok := reclaim[s]; ok {
				t.MinReclaim = &r
			}
			if soft {
				d, ok := grace[s]
				if !ok || d == 0 {
					bad(flag, string(s), text, "given a time by eviction-soft-grace-period")
					return
				}
				t.Grace = d
			}
			out = append(out, t)
			if s == MemoryAvailable && !soft {
				t.Signal = AllocatableMemoryAvailable
				out = append(out, t)
			}
		})
	}
	add("eviction-hard", c.Hard, false)
	add("eviction-soft", c.Soft, true)
	return out, errors.Join(errs...)
}

func parseValue(s string) (Value, error) {
	if p, ok := strings.CutSuffix(s, "%"); ok {
		f, err := strconv.ParseFloat(p, 64)
		if err != nil || f <= 0 || f > 100 {
			return Value{}, errors.New("a percentage above 0% and up to 100%")
		}
		return Value{Part: f / 100}, nil
	}
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Sign() < 0 {
		return Value{}, errors.New("a quantity like 100Mi or a percentage like 10%")
	}
	return Value{Quantity: &q}, nil
}

// Reserve is what the hard thresholds keep from pods of a node's capacity: it is
// not allocatable.
func Reserve(thresholds []Threshold, capacity corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, t := range thresholds {
		name := t.Signal.Resource()
		if t.Grace != 0 || t.Signal != MemoryAvailable && t.Signal != NodeFsAvailable {
			continue
		}
		if have, ok := capacity[name]; ok {
			out[name] = t.Value.Of(have)
		}
	}
	return out
}

func sorted(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
