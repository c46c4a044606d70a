package ctl

import (
	"github.com/spf13/cobra"

	"github.com/periplus/periplus/ctl/agent"
	"github.com/periplus/periplus/ctl/clusters"
	"github.com/periplus/periplus/ctl/daemon"
	"github.com/periplus/periplus/ctl/down"
	"github.com/periplus/periplus/ctl/hollow"
	"github.com/periplus/periplus/ctl/image"
	"github.com/periplus/periplus/ctl/install"
	"github.com/periplus/periplus/ctl/kubectl"
	"github.com/periplus/periplus/ctl/lint"
	"github.com/periplus/periplus/ctl/mesh"
	"github.com/periplus/periplus/ctl/run"
	"github.com/periplus/periplus/ctl/token"
	"github.com/periplus/periplus/ctl/trace"
	"github.com/periplus/periplus/ctl/up"
	"github.com/periplus/periplus/ctl/version"
	"github.com/periplus/periplus/ctl/web"
	"github.com/periplus/periplus/ctl/why"
)

// verbs lists every command, one line each.
func verbs() []*cobra.Command {
	return append([]*cobra.Command{
		up.New(),
		up.NewServer(),
		agent.New(),
		hollow.New(),
		token.New(),
		down.New(),
		clusters.New(),
		run.New(),
		trace.New(),
		install.New(),
		install.NewUninstall(),
		why.New(),
		lint.New(),
		kubectl.New(),
		image.New(),
		web.New(),
		version.New(),
	}, append(daemon.New(), mesh.New()...)...)
}
