// Package ingress makes configuration from Ingress objects (networking.k8s.io/v1) of
// the classes whose controller is periplus.io/ingress: the class "periplus", which is
// the cluster's default one, is made by EnsureClass.
//
//	source.go       which Ingresses are ours
//	translate.go    hosts and paths of all Ingresses → routes of ports 80 and 443
//	paths.go        Exact, Prefix, ImplementationSpecific, regular expressions; which goes first
//	annotations.go  nginx.ingress.kubernetes.io/*: reading them
//	options.go      what they mean: filters, rewrites, redirects, timeouts
//	canary.go       a second Ingress for a part of the requests
//	status.go       status.loadBalancer, and events about what does not work
//
// Behaviour that the specification leaves open is that of ingress-nginx, since
// manifests rely on it: regular expressions match prefixes and ignore case;
// use-regex or rewrite-target on one Ingress makes regular expressions of all paths
// of its hosts; hosts with TLS redirect from HTTP with 308; limit-rps answers 503
// above a burst of five times the rate. What is not understood is ignored, with an
// event. There is no bound for request bodies unless proxy-body-size sets one.
package ingress
