package tour

import "context"

// A stage is one chapter of the story.
type stage struct {
	title string
	run   func(t *tour, ctx context.Context) error
	// evidence is typed on the server when the stage has failed.
	evidence []string
}

// stages are told in this order; each builds on those before it.
var stages = []stage{
	{"Four machines without a way out; a cluster on three of them", (*tour).cluster, nil},
	{"A namespace joins the mesh", (*tour).namespace, nil},
	{"nginx, from an image, with a volume, probes, and something to wait for", (*tour).web, []string{"peri why deployment/web"}},
	{"What it waits for: an API in two versions", (*tour).api, []string{"peri why deployment/web", "peri why deployment/api-v1", "peri why pvc/pages"}},
	{"From outside: load balancer → ingress → Service → sidecar → pod", (*tour).edge, []string{"peri why ingress/api", "peri why service/web", "peri why service/edge"}},
	{"The log of the voyage, from T+0 to the first answer", (*tour).log, nil},
	{"Mutual TLS, or nothing", (*tour).strict, []string{"kubectl get peerauthentications -A", "peri why service/api"}},
	{"Canary: one request in ten goes to the new version", (*tour).canary, []string{"kubectl get virtualservices,destinationrules -o yaml"}},
	{"429: more orders than allowed", (*tour).limit, []string{"kubectl get virtualservices -o yaml"}},
	{"403: who may do what", (*tour).policy, []string{"kubectl get authorizationpolicies -o yaml"}},
	{"A backend that fails is left out", (*tour).outlier, []string{"kubectl get destinationrules -o yaml", "peri why service/api"}},
	{"The volume outlives the pod", (*tour).volume, []string{"peri why deployment/web", "peri why pvc/pages"}},
	{"What cannot be says why", (*tour).why, nil},
	{"The server stops; the agents go on", (*tour).without, []string{"peri why service/edge"}},
	{"Everything ends, and nothing stays behind", (*tour).leave, nil},
}
