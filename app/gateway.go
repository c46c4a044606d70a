package app

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/gateway"
	gatewayall "github.com/periplus/periplus/gateway/all"
	"github.com/periplus/periplus/gateway/crd"
	"github.com/periplus/periplus/gateway/ingress"
	"github.com/periplus/periplus/mesh/edge"
)

// gatewayUser is who the gateway of a server is to the API.
const gatewayUser = "system:periplus-gateway"

// nodesGroup are all nodes.
const nodesGroup = "system:nodes"

// Roles of gateways: every node reads what it serves, servers also report.
const (
	gatewayRole       = "periplus:gateway"
	gatewayStatusRole = "periplus:gateway-status"
)

// gatewayStage looks for Ingresses and Gateways, has a process serve them on this node
// (gatewayprocess.go), and on a server it reports their statuses. It begins when the
// machine is ready, so that nobody waits for it; without an Ingress or a Gateway there
// is no process.
func (w *worker) gatewayStage(after ...string) stage {
	return stage{name: "gateway", after: after, run: func(ctx context.Context, ready func()) error {
		ready()
		log := w.log.With(base.KeyComponent, "gateway")
		config, err := w.connect("gateway")
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		sources := gatewayall.Config{Client: c, Informers: w.shared(), MakeClasses: w.together, Namespaces: w.together, Log: w.log}
		if sources.Dynamic, err = dynamic.NewForConfig(config); err != nil {
			return err
		}
		if sources.Metadata, err = metadata.NewForConfig(config); err != nil {
			return err
		}
		broadcaster, stop := recordEvents(ctx, c)
		defer stop()
		events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "periplus-gateway", Host: w.config.NodeName})
		if w.together {
			sources.Events = events
		}
		settings := gateway.Config{
			Sources: gatewayall.Sources(sources), Informers: w.shared(), HTTPPort: w.config.IngressHTTPPort, HTTPSPort: w.config.IngressHTTPSPort,
			WriteStatus: w.together, Passive: true, Nodes: nodesGroup, Log: log,
			Journey: w.record, Node: w.config.NodeName,
		}
		if w.together {
			settings.GrantClient = c
		} else {
			settings.SecretClient = c
		}
		var server *gateway.Server
		keeper := w.gatewayKeeper(log, func() { server.Refresh() })
		settings.OnActive, settings.Taken = keeper.want, keeper.ports
		if server, err = gateway.New(settings); err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		return base.RunAll(ctx,
			base.Component{Name: "gateway", Run: server.Run},
			base.Component{Name: "gateway's process", Run: keeper.run},
			base.Component{Name: "definitions of the Gateway API", Run: func(ctx context.Context) error {
				if w.together && w.config.GatewayAPI {
					if err := crd.Apply(ctx, sources.Metadata, w.define); err != nil && ctx.Err() == nil {
						log.Error("The kinds of the Gateway API could not be made", base.KeyError, err)
					}
				}
				<-ctx.Done()
				return nil
			}},
		)
	}}
}

// ensureGateway makes the default class of Ingresses and the roles of gateways.
func ensureGateway(ctx context.Context, c kubernetes.Interface) error {
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	read, write := []string{"get", "list", "watch"}, []string{"patch", "update"}
	const api = "gateway.networking.k8s.io"
	role := func(name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) error {
		meta := metav1.ObjectMeta{Name: name}
		_, err1 := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		_, err2 := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		}, metav1.CreateOptions{})
		return errors.Join(made(err1), made(err2))
	}
	group := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: nodesGroup}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: gatewayUser}
	reading := []rbacv1.PolicyRule{
		rule(networkingv1.GroupName, read, "ingresses", "ingressclasses"),
		rule(api, read, "gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants"),
		rule("apiextensions.k8s.io", read, "customresourcedefinitions"),
	}
	return errors.Join(
		ingress.EnsureClass(ctx, c),
		edge.AllowNodes(ctx, c),
		role(gatewayRole, group, reading...),
		role(gatewayStatusRole, user, append(reading,
			rule("", read, "secrets", "services", "nodes", "namespaces"),
			rule("discovery.k8s.io", read, "endpointslices"),
			rule(networkingv1.GroupName, write, "ingresses/status"),
			rule(api, write, "gatewayclasses/status", "gateways/status", "httproutes/status", "grpcroutes/status"),
			rule(api, []string{"create"}, "gatewayclasses"),
			rule("", []string{"create", "patch", "update"}, "events"),
			rule(rbacv1.GroupName, []string{"get", "list", "create", "update", "delete"}, "roles", "rolebindings"),
		)...),
	)
}
