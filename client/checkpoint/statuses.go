package checkpoint

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
)

const statusBucket = "statuses"

// Statuses keeps the statuses of pods that the API has not been told.
type Statuses struct{ store *Store }

// Statuses returns them.
func (s *Store) Statuses() Statuses { return Statuses{s} }

// Load returns the status that the API had not been told in an earlier life, or nil.
func (s Statuses) Load(uid types.UID) *corev1.PodStatus {
	data := s.store.get(statusBucket, string(uid))
	if data == nil {
		return nil
	}
	out := &corev1.PodStatus{}
	if err := out.Unmarshal(data); err != nil {
		s.store.log.Warn("A checkpoint cannot be read", base.KeyUID, uid, base.KeyError, err)
		return nil
	}
	return out
}

// Save keeps a status; nil: the API has it now, or the pod is gone.
func (s Statuses) Save(uid types.UID, status *corev1.PodStatus) {
	if status == nil {
		s.store.put(statusBucket, string(uid), nil)
		return
	}
	if data, err := status.Marshal(); err == nil {
		s.store.put(statusBucket, string(uid), data)
	}
}
