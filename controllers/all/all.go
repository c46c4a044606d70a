package all

import (
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/deployment"
	"github.com/periplus/periplus/controllers/replicaset"
	"github.com/periplus/periplus/controllers/replicationcontroller"
)

// Controllers lists every controller, one line each.
func Controllers() []controllers.Controller {
	return []controllers.Controller{
		deployment.Controller(),
		replicaset.Controller(),
		replicationcontroller.Controller(),
	}
}
