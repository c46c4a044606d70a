package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Hooks take part in a write. The first two return a function that is called once with
// whether the write was stored, to keep or give back what was taken (cluster IPs, node
// ports), or an API error that refuses the write. When it is not known whether the write
// was stored, that function is not called: what was taken may be somebody's.
type Hooks struct {
	BeginCreate func(ctx context.Context, obj runtime.Object, dryRun bool) (finish func(stored bool), err error)
	BeginUpdate func(ctx context.Context, obj, old runtime.Object, dryRun bool) (finish func(stored bool), err error)
	AfterDelete func(ctx context.Context, obj runtime.Object)
	// Claims, if not nil, says what objects claim.
	Claims Claimant
}

// A Claim is a record that is in the store as long as an object holds something of
// which there is one only: an address, a node port. It is made and removed in the
// transaction that writes the object, so that no two objects ever hold the same,
// however many servers write, and whatever becomes of a server in between.
type Claim struct {
	// Key and Value are a record of no kind.
	Key   string
	Value []byte
	// Object is a record that is itself an object, of resource GVR. Claims on objects of
	// a resource that is not served are not made.
	GVR    schema.GroupVersionResource
	Object runtime.Object
}

// A Record is what lies where a claim belongs: the value of a record, or the object.
type Record struct {
	Value  []byte
	Object runtime.Object
}

// A Claimant says what the objects of one kind claim.
type Claimant interface {
	// Claims returns what obj claims. It depends on obj alone.
	Claims(obj runtime.Object) []Claim
	// Mine reports whether a record that is itself an object is a claim.
	Mine(c Claim, record runtime.Object) bool
	// Void reports whether a record that lies where c was to be made may be replaced or
	// removed, because nobody holds what it claims.
	Void(ctx context.Context, record Record, c Claim) bool
	// Taken notes that somebody else holds what c claims: whoever begins again
	// gets another, or is refused.
	Taken(c Claim)
	// Records is the prefix of the keys of records of no kind, and Parse returns the
	// claim that a key is of.
	Records() string
	Parse(key string) Claim
}
