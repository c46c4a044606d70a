// Package trace is "peri trace": the journey of an object as a timeline, from
// the request that made it to the first answered request.
//
//	find.go      the object, by kind and name
//	related.go   whose journeys belong to it: pods, Services, claims, Ingresses
//	collect.go   their steps, and the other hops of the requests among them
//	print.go     the timeline; trace.go also: JSON, OTLP
package trace
