package crd

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type (
	props  = apiextensionsv1.JSONSchemaProps
	fields = map[string]props
)

// open is an object with further fields than those that are named.
func open(about string, f ...fields) props {
	yes := true
	p := props{Type: "object", Description: about, XPreserveUnknownFields: &yes}
	if len(f) > 0 {
		p.Properties = f[0]
	}
	return p
}

func list(about string, of props) props {
	return props{Type: "array", Description: about, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &of}}
}

func text(about string) props   { return props{Type: "string", Description: about} }
func number(about string) props { return props{Type: "integer", Description: about} }
func texts(about string) props  { return list(about, text("")) }

func oneOf(about string, values ...string) props {
	p := text(about)
	for _, v := range values {
		p.Enum = append(p.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
	}
	return p
}

func labels(about string) props {
	t := text("")
	return props{Type: "object", Description: about, AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &t}}
}

func selector() props {
	return open("The workloads that it is for; without it, all of the namespace.", fields{"matchLabels": labels("Labels that a pod must have.")})
}

func destination() props {
	return open("Where requests go.", fields{
		"host":   text("The name of a Service; a short one is in this object's namespace."),
		"subset": text("A subset of a DestinationRule."),
		"port":   open("The port of the Service.", fields{"number": number("Its number.")}),
	})
}

func virtualService() props {
	return open("Routes.", fields{
		"hosts":    texts("The hosts to which requests are sent."),
		"gateways": texts(`Gateways that apply the routes; "mesh", all sidecars, if none is named.`),
		"exportTo": texts(`Namespaces that see it: ".", "*", or names; all if none is named.`),
		"http": list("Routes for HTTP and gRPC: the first match counts.", open("A route.", fields{
			"name":  text("For logs and metrics."),
			"match": list("Conditions of which one must hold.", open("A condition: uri, scheme, method, authority, headers, queryParams, port, sourceLabels, sourceNamespace.")),
			"route": list("Where requests go, by weight.", open("A share.", fields{"destination": destination(), "weight": number("Its share."), "headers": open("Changes of headers.")})),
			"rateLimit": open("Requests beyond it are answered with 429. An extension of Periplus; each proxy counts for itself.", fields{
				"requestsPerUnit": number("How many requests are allowed in a unit."),
				"unit":            oneOf("The unit; SECOND if none is named.", "SECOND", "MINUTE", "HOUR"),
				"burst":           number("How many may come at once; requestsPerUnit if it is not set."),
			}),
			"redirect": open("A redirection."), "directResponse": open("An answer of the proxy."), "rewrite": open("Changes of path and host."),
			"timeout": text(`The longest time for an answer: "2s".`),
			"retries": open("What is tried again.", fields{"attempts": number("How often."), "perTryTimeout": text("The longest time for one try."), "retryOn": text("Reasons.")}),
			"fault":   open("Delays and failures for tests.", fields{"delay": open("A delay."), "abort": open("A failure.")}),
			"mirror":  destination(), "mirrorPercentage": open("How much is mirrored."),
			"corsPolicy": open("Cross-origin requests."), "headers": open("Changes of headers."),
		})),
		"tcp": list("Routes for other protocols.", open("A route.")),
		"tls": list("Routes for TLS that is passed through.", open("A route.")),
	})
}

func trafficPolicy(about string) props {
	return open(about, fields{
		"loadBalancer":     open("How an endpoint is chosen.", fields{"simple": oneOf("A policy.", "UNSPECIFIED", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "ROUND_ROBIN", "LEAST_REQUEST"), "consistentHash": open("By a part of the request.")}),
		"connectionPool":   open("Bounds.", fields{"tcp": open("For connections."), "http": open("For requests.")}),
		"outlierDetection": open("When an endpoint that fails is left out.", fields{"consecutive5xxErrors": number("Failures in a row: 5."), "interval": text("10s."), "baseEjectionTime": text("30s."), "maxEjectionPercent": number("10.")}),
		"tls":              open("TLS towards endpoints.", fields{"mode": oneOf("How.", "DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL")}),
	})
}

func destinationRule() props {
	return open("Policies for a host.", fields{
		"host":          text("The name of a Service; a short one is in this object's namespace."),
		"trafficPolicy": trafficPolicy("For all subsets."),
		"exportTo":      texts("Namespaces that see it."),
		"subsets": list("Parts of a service, by labels of pods.", open("A subset.", fields{
			"name": text("Its name."), "labels": labels("Labels that pods must have."), "trafficPolicy": trafficPolicy("For this subset."),
		})),
	})
}

var modes = []string{"UNSET", "DISABLE", "PERMISSIVE", "STRICT"}

func peerAuthentication() props {
	mode := open("Mutual TLS.", fields{"mode": oneOf("STRICT: only mutual TLS; PERMISSIVE: plain text too; DISABLE: only plain text.", modes...)})
	return open("Mutual TLS of workloads.", fields{
		"selector": selector(), "mtls": mode,
		"portLevelMtls": {Type: "object", Description: "Other modes for some ports of the pod.", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &mode}},
	})
}

func authorizationPolicy() props {
	return open("Who may do what.", fields{
		"selector": selector(),
		"action":   oneOf("What happens to requests that a rule matches: ALLOW if none is named.", "ALLOW", "DENY", "AUDIT", "CUSTOM"),
		"provider": open("Who decides, for CUSTOM.", fields{"name": text("Its name in the mesh's configuration.")}),
		"rules": list("Of which one must match; none allows nothing.", open("A rule.", fields{
			"from": list("Sources of which one must match.", open("", fields{"source": open("A caller: principals, namespaces, ipBlocks, serviceAccounts and their opposites.")})),
			"to":   list("Operations of which one must match.", open("", fields{"operation": open("A request: hosts, ports, methods, paths and their opposites.")})),
			"when": list("Conditions that must all hold.", open("", fields{"key": text("An attribute."), "values": texts("Allowed values."), "notValues": texts("Forbidden values.")})),
		})),
	})
}

func lower(s string) string { return strings.ToLower(s) }

func cutGroup(group string) (family, rest string, ok bool) { return strings.Cut(group, ".") }
