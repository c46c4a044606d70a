package batch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var jobHalves = kind.Split(func(obj *batchv1.Job) (*batchv1.JobSpec, *batchv1.JobStatus) {
	return &obj.Spec, &obj.Status
})

func jobs() *registry.Resource {
	s := jobHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("jobs"),
		Kind:       "Job",
		Singular:   "job",
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[batchv1.Job],
		NewList:    kind.Make[batchv1.JobList],
		Strategy:   s,
		Status:     jobHalves.Status(),
	}
}
