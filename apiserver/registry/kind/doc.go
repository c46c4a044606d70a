// Package kind holds the few pieces of which most kinds' resources are made:
// constructors of empty objects, and strategies of kinds that consist of a spec
// and a status. It depends on the contract in registry only.
//
//	main endpoint:  status is dropped (create) or kept (update), the generation
//	                starts at 1 and rises when the spec changes
//	/status:        the spec is kept, and with KeepMeta the metadata as well
package kind
