package autoscaling

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/periplus/periplus/apiserver/registry"
)

// Resources lists the kinds of the group.
func Resources(_ registry.Env) []*registry.Resource {
	return []*registry.Resource{
		horizontalPodAutoscalers(),
	}
}

// version is the group and version in which the kinds are stored.
var version = autoscalingv2.SchemeGroupVersion
