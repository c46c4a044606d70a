// Package volumebinding is the plug-in VolumeBinding: a pod goes where its volumes
// are, and volumes that wait for their first consumer are made where the pod goes.
//
//	PreFilter  the pod's claims: bound, or to be bound now (others make it wait)
//	Filter     bound volumes can be reached; for the others there is a volume or a class
//	Reserve    the volumes found for the chosen node are taken
//	PreBind    PV.claimRef, or the claim's annotation selected-node; wait until all are bound
package volumebinding
