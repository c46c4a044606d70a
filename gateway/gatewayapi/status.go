package gatewayapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/periplus/periplus/gateway"
)

// Report implements gateway.Source.
func (s *Source) Report(ctx context.Context, r *gateway.Result) error {
	st := s.last
	if st == nil {
		return nil
	}
	var errs []error
	for _, c := range s.ourClasses() {
		errs = append(errs, s.reportClass(ctx, c))
	}
	for _, g := range st.gateways {
		errs = append(errs, s.reportGateway(ctx, g, r))
	}
	for _, x := range st.routes {
		errs = append(errs, s.reportRoute(ctx, x))
	}
	return errors.Join(errs...)
}

// condition adds or replaces a condition, with the wording of p or that of success.
func condition(list *[]metav1.Condition, generation int64, kind string, good bool, reason, message string) {
	status := metav1.ConditionFalse
	if good {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(list, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation})
}

// judged is condition for things that are good unless there is a problem.
func judged(list *[]metav1.Condition, generation int64, kind string, p problem, goodReason, goodMessage string) {
	if p.reason == "" {
		condition(list, generation, kind, true, goodReason, goodMessage)
	} else {
		condition(list, generation, kind, false, p.reason, p.message)
	}
}

func (s *Source) reportClass(ctx context.Context, c *gatewayv1.GatewayClass) error {
	want := c.Status.DeepCopy()
	condition(&want.Conditions, c.Generation, string(gatewayv1.GatewayClassConditionStatusAccepted), true, string(gatewayv1.GatewayClassReasonAccepted), "Periplus serves Gateways of this class")
	want.SupportedFeatures = nil
	for _, f := range features {
		want.SupportedFeatures = append(want.SupportedFeatures, gatewayv1.SupportedFeature{Name: gatewayv1.FeatureName(f)})
	}
	return s.patch(ctx, classes, c, &c.Status, want)
}

// features are what is carried out beyond the core, in the names of the conformance tests.
var features = []string{
	"GRPCRoute", "Gateway", "GatewayPort8080", "HTTPRoute", "HTTPRouteBackendTimeout", "HTTPRouteCORS", "HTTPRouteHostRewrite", "HTTPRouteMethodMatching",
	"HTTPRouteParentRefPort", "HTTPRoutePathRedirect", "HTTPRoutePathRewrite", "HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching", "HTTPRouteRequestMirror",
	"HTTPRouteRequestMultipleMirrors", "HTTPRouteRequestPercentageMirror", "HTTPRouteRequestTimeout", "HTTPRouteResponseHeaderModification", "HTTPRouteSchemeRedirect", "ReferenceGrant",
}

func (s *Source) reportGateway(ctx context.Context, g *gatewayState, r *gateway.Result) error {
	want := g.Status.DeepCopy()
	want.Addresses = nil
	for _, ip := range r.IPs() {
		want.Addresses = append(want.Addresses, gatewayv1.GatewayStatusAddress{Type: ptr.To(gatewayv1.IPAddressType), Value: ip})
	}
	valid, programmed := 0, 0
	before := want.Listeners
	want.Listeners = nil
	for _, l := range g.listeners {
		ls := gatewayv1.ListenerStatus{Name: l.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
		if ls.SupportedKinds == nil {
			ls.SupportedKinds = []gatewayv1.RouteGroupKind{}
		}
		if i := slices.IndexFunc(before, func(b gatewayv1.ListenerStatus) bool { return b.Name == l.Name }); i >= 0 {
			ls.Conditions = slices.Clone(before[i].Conditions)
		}
		if l.report(&ls, r) {
			programmed++
		}
		if l.notAccepted.reason == "" && l.conflicted.reason == "" {
			valid++
		}
		want.Listeners = append(want.Listeners, ls)
	}
	accepted, ready := problem{g.refused, g.message}, problem{}
	switch {
	case accepted.reason != "":
		ready = problem{string(gatewayv1.GatewayReasonInvalid), g.message}
	case valid == 0:
		accepted = problem{string(gatewayv1.GatewayReasonListenersNotValid), "No listener is valid"}
		ready = problem{string(gatewayv1.GatewayReasonInvalid), "No listener is valid"}
	case len(want.Addresses) == 0:
		ready = problem{string(gatewayv1.GatewayReasonAddressNotAssigned), "No node is ready"}
	case programmed == 0:
		ready = problem{string(gatewayv1.GatewayReasonInvalid), "No listener can be served"}
	}
	if accepted.reason == "" && valid < len(g.listeners) {
		condition(&want.Conditions, g.Generation, string(gatewayv1.GatewayConditionAccepted), true, string(gatewayv1.GatewayReasonListenersNotValid), "Some listeners are not valid")
	} else {
		judged(&want.Conditions, g.Generation, string(gatewayv1.GatewayConditionAccepted), accepted, string(gatewayv1.GatewayReasonAccepted), "The Gateway is accepted")
	}
	judged(&want.Conditions, g.Generation, string(gatewayv1.GatewayConditionProgrammed), ready, string(gatewayv1.GatewayReasonProgrammed), "The Gateway is served on every node")
	return s.patch(ctx, gateways, g.Gateway, &g.Status, want)
}

// report sets the conditions of a listener; true: it is served.
func (l *listener) report(ls *gatewayv1.ListenerStatus, r *gateway.Result) bool {
	generation := l.gateway.Generation
	accepted := l.notAccepted
	if accepted.reason == "" {
		accepted = l.conflicted
	}
	taken := r.Ports[int(l.Port)]
	if taken != nil && accepted.reason == "" {
		accepted = problem{string(gatewayv1.ListenerReasonPortUnavailable), fmt.Sprintf("Port %d %v", l.Port, taken)}
	}
	judged(&ls.Conditions, generation, string(gatewayv1.ListenerConditionAccepted), accepted, string(gatewayv1.ListenerReasonAccepted), "The listener is accepted")
	if l.conflicted.reason != "" {
		condition(&ls.Conditions, generation, string(gatewayv1.ListenerConditionConflicted), true, l.conflicted.reason, l.conflicted.message)
	} else {
		condition(&ls.Conditions, generation, string(gatewayv1.ListenerConditionConflicted), false, string(gatewayv1.ListenerReasonNoConflicts), "")
	}
	judged(&ls.Conditions, generation, string(gatewayv1.ListenerConditionResolvedRefs), l.unresolved, string(gatewayv1.ListenerReasonResolvedRefs), "All references are resolved")
	ready := problem{}
	if l.port == nil || taken != nil || l.unresolved.reason != "" && l.unresolved.reason != string(gatewayv1.ListenerReasonInvalidRouteKinds) {
		ready = problem{string(gatewayv1.ListenerReasonInvalid), "The listener cannot be served"}
	}
	judged(&ls.Conditions, generation, string(gatewayv1.ListenerConditionProgrammed), ready, string(gatewayv1.ListenerReasonProgrammed), "The listener is served")
	return ready.reason == ""
}

// reportRoute writes our parents and leaves those of other controllers alone.
func (s *Source) reportRoute(ctx context.Context, x *routeState) error {
	want := gatewayv1.RouteStatus{Parents: []gatewayv1.RouteParentStatus{}}
	for _, p := range x.status.Parents {
		if p.ControllerName != Controller {
			want.Parents = append(want.Parents, p)
		}
	}
	generation := x.object.GetGeneration()
	for i := range x.parents {
		p := &x.parents[i]
		ps := gatewayv1.RouteParentStatus{ParentRef: p.ref, ControllerName: Controller}
		for j := range x.status.Parents {
			if b := &x.status.Parents[j]; b.ControllerName == Controller && reflect.DeepEqual(b.ParentRef, p.ref) {
				ps.Conditions = slices.Clone(b.Conditions)
			}
		}
		accepted := p.notAccepted
		if accepted.reason == "" {
			accepted = x.refused
		}
		judged(&ps.Conditions, generation, string(gatewayv1.RouteConditionAccepted), accepted, string(gatewayv1.RouteReasonAccepted), "The route is accepted")
		judged(&ps.Conditions, generation, string(gatewayv1.RouteConditionResolvedRefs), x.refs, string(gatewayv1.RouteReasonResolvedRefs), "All references are resolved")
		want.Parents = append(want.Parents, ps)
	}
	return s.patch(ctx, x.resource, x.object, x.status, &want)
}

// patch writes a status if it is another one.
func (s *Source) patch(ctx context.Context, r schema.GroupVersionResource, obj metav1.Object, have, want any) error {
	if reflect.DeepEqual(have, want) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": obj.GetUID()}, "status": want})
	if err != nil {
		return err
	}
	_, err = s.cfg.Client.Resource(r).Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next event brings it
	}
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", r.Resource, obj.GetNamespace(), obj.GetName(), err)
	}
	return nil
}
