package all

import "github.com/periplus/periplus/controllers"

// Controllers lists every controller, one line each.
func Controllers() []controllers.Controller {
	return []controllers.Controller{}
}
