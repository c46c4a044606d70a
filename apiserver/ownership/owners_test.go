package ownership_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/periplus/periplus/apiserver/ownership"
)

// plain converts nothing: all is of one version.
type plain struct{}

func (plain) Default(runtime.Object) {}
func (plain) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &appsv1.Deployment{}, nil
}
func (plain) Convert(_, _, _ any) error { return nil }
func (plain) ConvertToVersion(obj runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return obj, nil
}
func (plain) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func show(entries []metav1.ManagedFieldsEntry) string {
	var out []string
	for _, e := range entries {
		when := "never"
		if e.Time != nil {
			when = e.Time.UTC().Format(time.TimeOnly)
		}
		out = append(out, fmt.Sprint(e.Manager, " ", e.Operation, " ", e.APIVersion, " ", e.Subresource, " ", when, " ", e.FieldsV1.GetRawString()))
	}
	return strings.Join(out, "\n")
}

// TestOwners follows an object through many writes of many managers and compares its
// entries after each with those of upstream's field manager.
func TestOwners(t *testing.T) {
	t.Parallel()
	types, err := library()
	if err != nil {
		t.Fatal(err)
	}
	gvk := appsv1.SchemeGroupVersion.WithKind("Deployment")
	managers := map[string]*managedfields.FieldManager{}
	filters := map[string]*ownership.Filter{"": ownership.Except([]string{"status"}), "status": ownership.Except([]string{"spec"})}
	for sub, field := range map[string]string{"": "status", "status": "spec"} {
		filter := map[fieldpath.APIVersion]fieldpath.Filter{"apps/v1": fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(field)))}
		if managers[sub], err = managedfields.NewDefaultFieldManager(types, plain{}, plain{}, plain{}, gvk, gvk.GroupVersion(), sub, filter); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			m := maker{rand.New(rand.NewPCG(seed, 5))} //nolint:gosec // the same each time
			live := &appsv1.Deployment{}
			live.SetGroupVersionKind(gvk)
			others := live.DeepCopy()
			for round := range 40 {
				<-time.After(time.Duration(1+m.IntN(2)) * time.Second)
				manager, sub := fmt.Sprint("m", m.IntN(14)), ""
				if round > 0 && m.once(4) {
					sub = "status"
				}
				next := settled(t, live).(*appsv1.Deployment)
				for range 1 + m.IntN(5) {
					m.change(reflect.ValueOf(&next.Spec).Elem())
					m.change(reflect.ValueOf(&next.Labels).Elem())
					m.change(reflect.ValueOf(&next.Status).Elem())
				}
				next = settled(t, next).(*appsv1.Deployment)
				next.SetGroupVersionKind(gvk)
				next.UID, next.ManagedFields = "u", nil
				switch m.IntN(12) {
				case 0:
					next.ManagedFields = slices.Clone(live.ManagedFields)
				case 1:
					if len(live.ManagedFields) > 1 {
						next.ManagedFields = slices.Clone(live.ManagedFields[1:])
					}
				case 2:
					next.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "strange", Operation: "Other"}}
				}
				theirs := next.DeepCopy()
				upstream := managers[sub].UpdateNoErrors(others, theirs, manager).(*appsv1.Deployment)
				w := ownership.Write{
					Manager: manager, APIVersion: "apps/v1", Subresource: sub, Create: round == 0, Live: live.ManagedFields, Sent: next.ManagedFields,
					Compare: func(_ string, into *ownership.Change) error {
						return ownership.Compare(live, next, filters[sub], into)
					},
				}
				owners, err := w.Owners()
				if err == nil && show(owners) != show(upstream.ManagedFields) {
					t.Fatalf("round %d, %s %s:\n%s\nwant\n%s\nbefore\n%s", round, manager, sub, show(owners), show(upstream.ManagedFields), show(live.ManagedFields))
				}
				next.ManagedFields = owners
				live, others = next, upstream
				others.ManagedFields = slices.Clone(owners)
			}
			if len(live.ManagedFields) == 0 {
				t.Error("nobody owns anything")
			}
		})
	}
}

// TestReset: a client gives up all ownership by sending an empty entry.
func TestReset(t *testing.T) {
	t.Parallel()
	live := []metav1.ManagedFieldsEntry{{Manager: "a", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}}
	for name, test := range map[string]struct {
		w    ownership.Write
		want string
	}{
		"an empty entry":          {ownership.Write{Live: live, Sent: []metav1.ManagedFieldsEntry{{}}}, ""},
		"an empty list":           {ownership.Write{Live: live, Sent: []metav1.ManagedFieldsEntry{}}, ""},
		"nothing":                 {ownership.Write{Live: live}, `a Update v1  never {"f:data":{}}`},
		"through a subresource":   {ownership.Write{Live: live, Sent: []metav1.ManagedFieldsEntry{{}}, Subresource: "status"}, `a Update v1  never {"f:data":{}}`},
		"one who owns nothing":    {ownership.Write{}, ""},
		"a version that has gone": {ownership.Write{Live: live, APIVersion: "v2"}, ""},
	} {
		test.w.Compare = func(version string, _ *ownership.Change) error {
			if version == "v1" && test.w.APIVersion == "v2" {
				return ownership.ErrNoVersion
			}
			return nil
		}
		if test.w.APIVersion == "" {
			test.w.APIVersion = "v1"
		}
		if got, err := test.w.Owners(); err != nil || show(got) != test.want {
			t.Errorf("%s: %q, %v; want %q", name, show(got), err, test.want)
		}
	}
}

// TestSharing: objects of the same shape share their sets.
func TestSharing(t *testing.T) {
	t.Parallel()
	entries := func() []metav1.ManagedFieldsEntry {
		return []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:shared":{}}`)}}
	}
	a, b := entries(), entries()
	ownership.Share(a)
	ownership.Share(b)
	if a[0].FieldsV1 != b[0].FieldsV1 {
		t.Error("two of the same")
	}
}
