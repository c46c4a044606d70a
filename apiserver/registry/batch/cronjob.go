package batch

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var cronJobHalves = kind.Split(func(obj *batchv1.CronJob) (*batchv1.CronJobSpec, *batchv1.CronJobStatus) {
	return &obj.Spec, &obj.Status
})

func cronJobs() *registry.Resource {
	s := cronJobHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("cronjobs"),
		Kind:       "CronJob",
		Singular:   "cronjob",
		ShortNames: []string{"cj"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[batchv1.CronJob],
		NewList:    kind.Make[batchv1.CronJobList],
		Strategy:   s,
		Status:     cronJobHalves.Status(),
	}
}
