// Package kubelet makes the pods bound to one node real and tells the API what
// became of them.
//
//	pods informer ─┐                       ┌─ Volumes (volume.Host)
//	static pods ───┼─► worker (one per pod)┼─ cri.Runtime, cri.Images
//	runtime events ┘    │  syncs serially  └─ Prober (kubelet/probe)
//	                    ▼
//	             statusWriter ─► PATCH pods/status, DELETE when all is gone
//
// A worker's sync is level-triggered: it reads the newest pod, asks the runtime
// what exists (podRuntime), lets the pure function computeActions decide what is
// missing or too much, does that, and derives the API status from what the
// runtime says afterwards. A worker is a goroutine only while there is work; it
// is woken by informer events, runtime events, probe results and its own timer
// (back-off, active deadline, retry). Nothing polls.
//
// State lives in the runtime's labels and annotations (upstream's names), so a
// restarted kubelet finds its pods again and leaves them alone.
//
// The files by concern: worker.go and sync.go are the loop, actions.go the
// decision, execute.go, start.go and kill.go the deeds, status.go, phase.go and
// conditions.go the report, statuswriter.go its way to the API.
//
// What the node is short of is looked at when its lease is renewed (pressure.go), what
// containers get besides amounts is decided at admission (resourcesof.go).
//
// Children: eviction, imagegc and shutdown (making room, ending in time), devices, dra
// and affinity (devices, claims, processors of one's own), env (environment variables), image (pulls and their back-off),
// netcfg (DNS, /etc/hosts, host names), node (the Node object and its lease),
// probe, server, and kubelettest, a runtime in memory for tests.
package kubelet
