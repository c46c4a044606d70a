package horizontalpodautoscaler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/periplus/periplus/controllers"
)

// TestSettings: what holds for all autoscalers reaches them: tolerance, period, and how
// long a higher recommendation holds.
func TestSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := controllers.DefaultAutoscaling()
		settings.Tolerance, settings.Period, settings.DownscaleStabilization = 0.9, time.Second, 10*time.Second
		w := begin(t, &server{replicas: 4, use: uses(90, 4), settings: settings}, half)
		w.want(4, "") // 80 % above the target is tolerated
		w.set(func() { w.use = uses(100, 4) })
		w.pass(2 * time.Second)
		w.want(8, "")
		w.set(func() { w.use = uses(1, 4) })
		w.pass(8 * time.Second)
		w.want(8, "")
		w.pass(4 * time.Second)
		w.want(1, "")
	})
}
