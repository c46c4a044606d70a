package client

import (
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// The groups of client-go, each over this factory's InformerFor.

// Admissionregistration returns the informers of its group.
func (f *Factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}

// Internal returns the informers of its group.
func (f *Factory) Internal() apiserverinternal.Interface { return apiserverinternal.New(f, "", nil) }

// Apps returns the informers of its group.
func (f *Factory) Apps() apps.Interface { return apps.New(f, "", nil) }

// Autoscaling returns the informers of its group.
func (f *Factory) Autoscaling() autoscaling.Interface { return autoscaling.New(f, "", nil) }

// Batch returns the informers of its group.
func (f *Factory) Batch() batch.Interface { return batch.New(f, "", nil) }

// Certificates returns the informers of its group.
func (f *Factory) Certificates() certificates.Interface { return certificates.New(f, "", nil) }

// Coordination returns the informers of its group.
func (f *Factory) Coordination() coordination.Interface { return coordination.New(f, "", nil) }

// Core returns the informers of its group.
func (f *Factory) Core() core.Interface { return core.New(f, "", nil) }

// Discovery returns the informers of its group.
func (f *Factory) Discovery() discovery.Interface { return discovery.New(f, "", nil) }

// Events returns the informers of its group.
func (f *Factory) Events() events.Interface { return events.New(f, "", nil) }

// Extensions returns the informers of its group.
func (f *Factory) Extensions() extensions.Interface { return extensions.New(f, "", nil) }

// Flowcontrol returns the informers of its group.
func (f *Factory) Flowcontrol() flowcontrol.Interface { return flowcontrol.New(f, "", nil) }

// Lifecycle returns the informers of its group.
func (f *Factory) Lifecycle() lifecycle.Interface { return lifecycle.New(f, "", nil) }

// Networking returns the informers of its group.
func (f *Factory) Networking() networking.Interface { return networking.New(f, "", nil) }

// Node returns the informers of its group.
func (f *Factory) Node() node.Interface { return node.New(f, "", nil) }

// Policy returns the informers of its group.
func (f *Factory) Policy() policy.Interface { return policy.New(f, "", nil) }

// Rbac returns the informers of its group.
func (f *Factory) Rbac() rbac.Interface { return rbac.New(f, "", nil) }

// Resource returns the informers of its group.
func (f *Factory) Resource() resource.Interface { return resource.New(f, "", nil) }

// Scheduling returns the informers of its group.
func (f *Factory) Scheduling() scheduling.Interface { return scheduling.New(f, "", nil) }

// Storage returns the informers of its group.
func (f *Factory) Storage() storage.Interface { return storage.New(f, "", nil) }

// Storagemigration returns the informers of its group.
func (f *Factory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, "", nil)
}
