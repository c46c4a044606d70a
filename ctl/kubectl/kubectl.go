package kubectl

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/homedir"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	"github.com/periplus/periplus/app"
)

// New returns the command; everything after it goes to kubectl.
func New() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "the real kubectl, built in",
		DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) {
			os.Exit(Main(args))
		},
	}
}

// Main runs kubectl with the given arguments and returns its exit code. kubectl
// itself ends the process after most errors.
func Main(args []string) int {
	UseLocalCluster()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	full := append([]string{"kubectl"}, args...)
	os.Args = full // kubectl's plug-ins and completion look here
	cmd := kubectlcmd.NewDefaultKubectlCommandWithArgs(kubectlcmd.KubectlOptions{
		PluginHandler: kubectlcmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     full,
		ConfigFlags:   genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:     streams,
	})
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return 1
	}
	return 0
}

// UseLocalCluster points KUBECONFIG at this machine's cluster when the user
// has no configuration.
func UseLocalCluster() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	if _, err := os.Stat(filepath.Join(homedir.HomeDir(), ".kube", "config")); err == nil {
		return
	}
	d := app.Defaults()
	for _, path := range []string{d.Kubeconfig, d.AdminKubeconfig()} {
		if _, err := os.Stat(path); err == nil {
			// Setenv fails for names with "=" or NUL only.
			_ = os.Setenv("KUBECONFIG", path)
			return
		}
	}
}
