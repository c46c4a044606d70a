package all

import (
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/attachdetach"
	"github.com/periplus/periplus/controllers/bootstrapsigner"
	"github.com/periplus/periplus/controllers/clusterroleaggregation"
	"github.com/periplus/periplus/controllers/cronjob"
	"github.com/periplus/periplus/controllers/csrapproving"
	"github.com/periplus/periplus/controllers/csrcleaner"
	"github.com/periplus/periplus/controllers/csrsigning"
	"github.com/periplus/periplus/controllers/daemonset"
	"github.com/periplus/periplus/controllers/deployment"
	"github.com/periplus/periplus/controllers/disruption"
	"github.com/periplus/periplus/controllers/endpoints"
	"github.com/periplus/periplus/controllers/endpointslice"
	"github.com/periplus/periplus/controllers/ephemeralvolume"
	"github.com/periplus/periplus/controllers/garbagecollector"
	"github.com/periplus/periplus/controllers/horizontalpodautoscaler"
	"github.com/periplus/periplus/controllers/job"
	"github.com/periplus/periplus/controllers/namespace"
	"github.com/periplus/periplus/controllers/nodeipam"
	"github.com/periplus/periplus/controllers/nodelifecycle"
	"github.com/periplus/periplus/controllers/persistentvolume"
	"github.com/periplus/periplus/controllers/podgc"
	"github.com/periplus/periplus/controllers/pvcprotection"
	"github.com/periplus/periplus/controllers/pvprotection"
	"github.com/periplus/periplus/controllers/replicaset"
	"github.com/periplus/periplus/controllers/replicationcontroller"
	"github.com/periplus/periplus/controllers/resourcequota"
	"github.com/periplus/periplus/controllers/rootca"
	"github.com/periplus/periplus/controllers/serviceaccount"
	"github.com/periplus/periplus/controllers/servicelb"
	"github.com/periplus/periplus/controllers/statefulset"
	"github.com/periplus/periplus/controllers/tainteviction"
	"github.com/periplus/periplus/controllers/tokencleaner"
	"github.com/periplus/periplus/controllers/ttlafterfinished"
)

// Controllers lists every controller, one line each.
func Controllers() []controllers.Controller {
	return []controllers.Controller{
		nodeipam.Controller(),
		serviceaccount.Controller(),
		rootca.Controller(),
		deployment.Controller(),
		replicaset.Controller(),
		replicationcontroller.Controller(),
		statefulset.Controller(),
		daemonset.Controller(),
		job.Controller(),
		cronjob.Controller(),
		ttlafterfinished.Controller(),
		endpointslice.Controller(),
		endpoints.Controller(),
		nodelifecycle.Controller(),
		tainteviction.Controller(),
		podgc.Controller(),
		disruption.Controller(),
		resourcequota.Controller(),
		horizontalpodautoscaler.Controller(),
		persistentvolume.Controller(),
		pvcprotection.Controller(),
		pvprotection.Controller(),
		ephemeralvolume.Controller(),
		attachdetach.Controller(),
		clusterroleaggregation.Controller(),
		namespace.Controller(),
		garbagecollector.Controller(),
		bootstrapsigner.Controller(),
		csrapproving.Controller(),
		csrcleaner.Controller(),
		csrsigning.Controller(),
		tokencleaner.Controller(),
		servicelb.Controller(),
	}
}
