package app

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/periplus/periplus/controllers"
	controllersall "github.com/periplus/periplus/controllers/all"
)

func tuned(t *testing.T, args ...string) (controllers.Options, Config) {
	t.Helper()
	c := Defaults()
	f := pflag.NewFlagSet("peri", pflag.ContinueOnError)
	c.Flags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	var o controllers.Options
	c.tune(&o)
	return o, c
}

// TestControllerSyncs: each flag reaches the controller of its name, and no flag means
// what the controller declares.
func TestControllerSyncs(t *testing.T) {
	t.Parallel()
	declared := map[string]int{}
	for _, c := range controllersall.Controllers() {
		declared[c.Name] = cmp.Or(c.Workers, 5)
	}
	o, _ := tuned(t)
	for _, s := range new(ControllersConfig).syncs() {
		if n := declared[s.controller]; n != o.Workers[s.controller] || n != s.otherwise {
			t.Errorf("%s: default %d, %s declares %d", s.flag, o.Workers[s.controller], s.controller, n)
		}
		if o, _ := tuned(t, "--"+s.flag+"=17"); o.Workers[s.controller] != 17 {
			t.Errorf("%s does not reach %s: %v", s.flag, s.controller, o.Workers)
		}
	}
}

func TestControllerFlags(t *testing.T) {
	t.Parallel()
	if o, _ := tuned(t); o.Autoscaling != controllers.DefaultAutoscaling() || o.Eviction != controllers.DefaultEviction() {
		t.Errorf("defaults: %+v %+v", o.Autoscaling, o.Eviction)
	}
	o, _ := tuned(t, "--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-downscale-stabilization=2s", "--horizontal-pod-autoscaler-tolerance=0.3",
		"--horizontal-pod-autoscaler-cpu-initialization-period=4s", "--horizontal-pod-autoscaler-initial-readiness-delay=5s",
		"--node-monitor-grace-period=6s", "--node-startup-grace-period=7s", "--node-eviction-rate=8", "--secondary-node-eviction-rate=9",
		"--unhealthy-zone-threshold=0.1", "--large-cluster-size-threshold=11", "--terminated-pod-gc-threshold=12", "--cluster-signing-duration=13h", "--max-endpoints-per-slice=14")
	if want := (controllers.Autoscaling{
		Period: time.Second, DownscaleStabilization: 2 * time.Second, Tolerance: 0.3, CPUInitialization: 4 * time.Second, InitialReadiness: 5 * time.Second,
	}); o.Autoscaling != want {
		t.Errorf("autoscaling: %+v", o.Autoscaling)
	}
	if want := (controllers.Eviction{Rate: 8, SecondaryRate: 9, UnhealthyZone: 0.1, LargeCluster: 11}); o.Eviction != want {
		t.Errorf("eviction: %+v", o.Eviction)
	}
	if o.NodeGracePeriod != 6*time.Second || o.NodeStartupGrace != 7*time.Second || o.TerminatedPods != 12 || o.CertificateLife != 13*time.Hour || o.EndpointsPerSlice != 14 {
		t.Errorf("options: %+v", o)
	}
	if o, _ := tuned(t, "--terminated-pod-gc-threshold=0"); o.TerminatedPods >= 0 {
		t.Errorf("a threshold of 0 is the default again: %d", o.TerminatedPods)
	}
}

func TestControllerFlagsRefused(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{
		"--concurrent-gc-syncs=0":                         "concurrent-gc-syncs must be greater than 0, but got 0",
		"--concurrent-service-endpoint-syncs=51":          "concurrent-service-endpoint-syncs must not be more than 50, but got 51",
		"--max-endpoints-per-slice=1001":                  "max-endpoints-per-slice must not be more than 1000, but got 1001",
		"--horizontal-pod-autoscaler-sync-period=0s":      "horizontal-pod-autoscaler-sync-period: 0s is not allowed",
		"--horizontal-pod-autoscaler-tolerance=-1":        "horizontal-pod-autoscaler-tolerance: -1 is not allowed",
		"--unhealthy-zone-threshold=NaN":                  "unhealthy-zone-threshold: NaN is not allowed",
		"--controllers=*,-deployments":                    `controllers: "deployments" is not in the list of known controllers: bootstrap-signer-controller`,
		"--controllers=*,-deployment,-cronjob-controller": "",
	} {
		_, c := tuned(t, arg)
		err := c.validateControllers()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}
