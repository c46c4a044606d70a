package apiserver

import (
	"context"

	"github.com/periplus/periplus/apiserver/metrics"
)

// addMetrics serves metrics.k8s.io from the kubelets.
func (s *Server) addMetrics() error {
	for _, r := range metrics.Resources(metrics.Config{Objects: s.rest, KubeletTLS: s.config.KubeletTLS, Log: s.config.Log}) {
		if _, err := s.rest.Add(context.Background(), r); err != nil {
			return err
		}
	}
	return nil
}
