package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/periplus/periplus/apiserver/discovery"
	"github.com/periplus/periplus/base"
)

const (
	// checkEvery is how often a server that can be reached is asked again.
	checkEvery = 30 * time.Second
	// retryFirst is the first pause after a failure; pauses double up to checkEvery.
	retryFirst = 100 * time.Millisecond
)

// keep looks after one remote until ctx ends.
func (s *Server) keep(ctx context.Context, r *remote) {
	defer r.transport.CloseIdleConnections()
	retry := retryFirst
	for {
		again := s.look(ctx, r)
		pause := checkEvery
		if again {
			pause = retry
			retry = min(2*retry, checkEvery)
		} else {
			retry = retryFirst
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-r.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// look finds out whether a server can be reached and makes it known: discovery first,
// then the condition. It reports whether to try again soon.
func (s *Server) look(ctx context.Context, r *remote) (again bool) {
	c := s.backing(r)
	if c == nil {
		list, err := r.resources(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			c = condition(apiregistrationv1.ConditionFalse, "FailedDiscoveryCheck", err.Error())
			again = true
		} else {
			c = condition(apiregistrationv1.ConditionTrue, "Passed", "all checks passed")
			index := r.index(ctx)
			r.mu.Lock()
			r.found, r.v3 = discovery.Remote{Resources: list}, index
			r.mu.Unlock()
		}
	}
	if c.Status != apiregistrationv1.ConditionTrue {
		r.mu.Lock()
		r.found.Stale = true
		r.mu.Unlock()
	}
	s.publish()
	s.setCondition(ctx, r.name, r.uid, *c)
	return again
}

func condition(status apiregistrationv1.ConditionStatus, reason, message string) *apiregistrationv1.APIServiceCondition {
	return &apiregistrationv1.APIServiceCondition{Type: apiregistrationv1.Available, Status: status, Reason: reason, Message: message}
}

// backing looks at the Service behind an APIService; nil means that it may work.
func (s *Server) backing(r *remote) *apiregistrationv1.APIServiceCondition {
	to := r.spec.Service
	what := fmt.Sprintf("service/%s in %q", to.Name, to.Namespace)
	obj, err := s.config.Rest.Get(services, to.Namespace, to.Name)
	if apierrors.IsNotFound(err) {
		return condition(apiregistrationv1.ConditionFalse, "ServiceNotFound", what+" is not present")
	}
	if err != nil {
		return condition(apiregistrationv1.ConditionUnknown, "ServiceAccessError", fmt.Sprintf("%s cannot be checked due to: %v", what, err))
	}
	service := obj.(*corev1.Service)
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		return nil
	}
	port := int32(443)
	if to.Port != nil {
		port = *to.Port
	}
	var wanted *corev1.ServicePort
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == port {
			wanted = &service.Spec.Ports[i]
			break
		}
	}
	if wanted == nil {
		return condition(apiregistrationv1.ConditionFalse, "ServicePortError", fmt.Sprintf("%s is not listening on port %d", what, port))
	}
	list, err := s.config.Rest.List(endpointSlices, to.Namespace)
	if err != nil {
		return condition(apiregistrationv1.ConditionUnknown, "EndpointsAccessError", fmt.Sprintf("%s cannot be checked due to: %v", what, err))
	}
	found := false
	for _, obj := range list {
		slice := obj.(*discoveryv1.EndpointSlice)
		if slice.Labels[discoveryv1.LabelServiceName] != to.Name {
			continue
		}
		found = true
		if leads(slice, wanted.Name) {
			return nil
		}
	}
	if !found {
		return condition(apiregistrationv1.ConditionFalse, "EndpointsNotFound", "cannot find endpointslices for "+what)
	}
	return condition(apiregistrationv1.ConditionFalse, "MissingEndpoints", fmt.Sprintf("endpointslices for %s have no addresses with port name %q", what, wanted.Name))
}

// leads reports whether a slice has a ready endpoint and a port of this name.
func leads(slice *discoveryv1.EndpointSlice, port string) bool {
	ready := false
	for i := range slice.Endpoints {
		c := slice.Endpoints[i].Conditions.Ready
		ready = ready || c == nil || *c
	}
	for _, p := range slice.Ports {
		if ready && p.Port != nil && (p.Name != nil && *p.Name == port || p.Name == nil && port == "") {
			return true
		}
	}
	return false
}

// resources asks a server which resources the group version has.
func (r *remote) resources(ctx context.Context) ([]metav1.APIResource, error) {
	path := "/apis/" + r.gv.Group + "/" + r.gv.Version
	body, _, err := r.get(ctx, path, "application/json", "")
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("failing or missing response from https://%s%s: %w", r.host, path, err)
	}
	return list.APIResources, nil
}

func conditionOf(a *apiregistrationv1.APIService) *apiregistrationv1.APIServiceCondition {
	return helper.GetAPIServiceConditionByType(a, apiregistrationv1.Available)
}

var errOther = errors.New("the APIService is another one now")

// setCondition writes a condition, unless the APIService has it already.
func (s *Server) setCondition(ctx context.Context, name string, uid types.UID, c apiregistrationv1.APIServiceCondition) {
	obj, err := s.config.Rest.Get(apiServices, "", name)
	if err != nil {
		return
	}
	a := obj.(*apiregistrationv1.APIService)
	before := conditionOf(a)
	if a.UID != uid || before != nil && before.Status == c.Status && before.Reason == c.Reason && before.Message == c.Message {
		return
	}
	if c.Status != apiregistrationv1.ConditionTrue && before != nil && before.Status == apiregistrationv1.ConditionTrue {
		s.config.Rest.Metrics().Unavailable(name, c.Reason)
	}
	if before == nil || before.Status != c.Status {
		s.config.Log.Info("availability of an APIService changes", base.KeyName, name, "available", string(c.Status), "reason", c.Reason, "message", c.Message)
	}
	c.LastTransitionTime = metav1.Now()
	err = s.write(ctx, name, func(a *apiregistrationv1.APIService) error {
		if a.UID != uid {
			return errOther
		}
		helper.SetAPIServiceCondition(a, c)
		return nil
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, errOther) && !apierrors.IsNotFound(err) {
		s.config.Log.Warn("condition of an APIService could not be written", base.KeyName, name, base.KeyError, err)
	}
}
