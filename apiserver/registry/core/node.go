package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var nodeHalves = kind.Split(func(obj *corev1.Node) (*corev1.NodeSpec, *corev1.NodeStatus) {
	return &obj.Spec, &obj.Status
})

func nodes() *registry.Resource {
	s := nodeHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:           version.WithResource("nodes"),
		Kind:          "Node",
		Singular:      "node",
		ShortNames:    []string{"no"},
		New:           kind.Make[corev1.Node],
		NewList:       kind.Make[corev1.NodeList],
		StoragePrefix: "minions",
		Strategy:      s,
		Status:        nodeHalves.Status(),
	}
}
