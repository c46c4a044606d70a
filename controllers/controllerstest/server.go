package controllerstest

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// number gives objects that are there from the start versions, so that two who
// change the same one conflict as they do later.
func number(t testing.TB, objects []runtime.Object) {
	t.Helper()
	for i, obj := range objects {
		o, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(strconv.Itoa(i + 1))
	}
}

// serve gives created objects what a server gives them: a UID, a name, a time, and
// a version later than the first ones.
func serve(client *fake.Clientset, first int) {
	var count atomic.Int64
	count.Store(int64(first))
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok || create.GetSubresource() != "" {
			return false, nil, nil
		}
		o, err := meta.Accessor(create.GetObject())
		if err != nil {
			return false, nil, nil
		}
		n := count.Add(1)
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)))
		}
		if o.GetName() == "" && o.GetGenerateName() != "" {
			o.SetName(o.GetGenerateName() + rand.String(5))
		}
		if t := o.GetCreationTimestamp(); t.IsZero() {
			o.SetCreationTimestamp(metav1.Now())
		}
		o.SetResourceVersion(strconv.FormatInt(n, 10))
		return false, nil, nil
	})
	// Updates of an old version conflict; every update makes a new one. (Patches
	// keep the version: the tracker applies them out of reach.)
	client.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		update, ok := action.(clienttesting.UpdateAction)
		if !ok {
			return false, nil, nil
		}
		o, err := meta.Accessor(update.GetObject())
		if err != nil {
			return false, nil, nil
		}
		gvr := action.GetResource()
		if current, err := client.Tracker().Get(gvr, o.GetNamespace(), o.GetName()); err == nil {
			have, err := meta.Accessor(current)
			if err == nil && o.GetResourceVersion() != "" && o.GetResourceVersion() != have.GetResourceVersion() {
				return true, nil, apierrors.NewConflict(gvr.GroupResource(), o.GetName(), errOld)
			}
		}
		o.SetResourceVersion(strconv.FormatInt(count.Add(1), 10))
		return false, nil, nil
	})
}

var errOld = errors.New("the object has been modified; please apply your changes to the latest version and try again")

type recorder struct{ c *Cluster }

var _ record.EventRecorderLogger = recorder{}

func (r recorder) Event(_ runtime.Object, _, reason, message string) {
	r.c.event(reason + ": " + message)
}

func (r recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (r recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(o, kind, reason, format, args...)
}

func (r recorder) WithLogger(klog.Logger) record.EventRecorderLogger { return r }
