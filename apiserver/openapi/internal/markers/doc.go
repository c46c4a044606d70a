// Command markers reads what the comments of k8s.io/api say about types and fields
// (+optional, +default, +listType, +enum …) and cannot be seen by reflection. It
// writes one line a type and one line a field, only where there is something:
//
//	= k8s.io/api/core/v1.PodSpec
//	containers list=map keys=name
//	nodeSelector map=atomic
//	dnsPolicy optional default="ClusterFirst"
//	= k8s.io/api/core/v1.Protocol enum=SCTP,TCP,UDP
package main
