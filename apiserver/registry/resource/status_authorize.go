package resource

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
)

// A claim's status has two kinds of writers, who need more than to update it (KEP-4817):
//
//	allocation, reservedFor   resourceclaims/binding, in all namespaces: the scheduler
//	devices of a driver       resourceclaims/driver of that name, with the verb
//	                          associated-node:VERB for a service account that runs on
//	                          the node of the claim, or arbitrary-node:VERB
type authorized struct{ mode authz.Mode }

// status checks whether the sender of a request may change what differs.
func (a authorized) status(ctx context.Context, now, old *resourcev1.ResourceClaimStatus) field.ErrorList {
	s := request.From(ctx)
	if a.mode == nil || s == nil || s.User == nil {
		return nil // the server itself
	}
	var errs field.ErrorList
	if !validation.Equal(now.Allocation, old.Allocation) || !validation.Equal(now.ReservedFor, old.ReservedFor) {
		q := question(s, s.Info.Verb, resourcev1.SubresourceBinding)
		if err := a.ask(ctx, q); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status", "allocation"), fmt.Sprintf(
				`changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%s" permission: %s`, q.Verb, err)))
		}
	}
	if now.Allocation == nil {
		return errs // the statuses of its devices are dropped
	}
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + s.Info.Verb}
	if runsOn(s.User, nodeOf(now.Allocation)) {
		verbs = []string{resourcev1.VerbPrefixAssociatedNode + s.Info.Verb, verbs[0]}
	}
	for _, driver := range changedDrivers(now.Devices, old.Devices) {
		if err := a.driver(ctx, s, verbs, driver); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status", "devices"), fmt.Sprintf(
				`changing status.devices requires resource="resourceclaims/driver", verb="%s" permission: %s`, verbs, err)))
		}
	}
	return errs
}

// driver asks for one of the verbs and returns the first refusal if there is none.
func (a authorized) driver(ctx context.Context, s *request.State, verbs []string, driver string) error {
	var first error
	for _, verb := range verbs {
		q := question(s, verb, resourcev1.SubresourceDriver)
		q.Namespace, q.Name = s.Info.Namespace, driver
		err := a.ask(ctx, q)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func question(s *request.State, verb, subresource string) *authz.Question {
	return &authz.Question{
		User: s.User, Verb: verb, IsResource: true, Group: resourcev1.GroupName, Version: s.Info.Version, Resource: "resourceclaims", Subresource: subresource,
	}
}

func (a authorized) ask(ctx context.Context, q *authz.Question) error {
	d, reason, err := a.mode.Authorize(ctx, q)
	switch {
	case d == authz.Allow:
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return authz.Forbidden(q, reason)
}

// changedDrivers are the drivers of devices whose status was added, changed or removed.
func changedDrivers(now, old []resourcev1.AllocatedDeviceStatus) []string {
	before := map[structured.SharedDeviceID]*resourcev1.AllocatedDeviceStatus{}
	for i := range old {
		before[sharedID(&old[i])] = &old[i]
	}
	drivers := map[string]bool{}
	for i := range now {
		id := sharedID(&now[i])
		if d := before[id]; d == nil || !validation.Equal(*d, now[i]) {
			drivers[now[i].Driver] = true
		}
		delete(before, id)
	}
	for _, d := range before {
		drivers[d.Driver] = true
	}
	return slices.Sorted(maps.Keys(drivers))
}

// nodeOf returns the only node that an allocation is for, "" if it is not one.
func nodeOf(a *resourcev1.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := &a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) != 0 || len(term.MatchFields) != 1 {
		return ""
	}
	f := &term.MatchFields[0]
	if f.Key != "metadata.name" || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
		return ""
	}
	return f.Values[0]
}

// runsOn reports whether a user is the service account of a pod on a node.
func runsOn(u user.Info, node string) bool {
	if node == "" {
		return false
	}
	if _, _, err := serviceaccount.SplitUsername(u.GetName()); err != nil {
		return false
	}
	names := u.GetExtra()[serviceaccount.NodeNameKey]
	return len(names) == 1 && names[0] == node && len(apivalidation.NameIsDNSSubdomain(node, false)) == 0
}
