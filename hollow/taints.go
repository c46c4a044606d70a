package hollow

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Taints are a flag's value: "key=value:Effect,key:Effect".
type Taints []corev1.Taint

var _ pflag.Value = (*Taints)(nil)

// Set implements pflag.Value. Several flags add up.
func (t *Taints) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		parsed, err := parseTaint(one)
		if err != nil {
			return err
		}
		*t = append(*t, parsed)
	}
	return nil
}

// Type implements pflag.Value.
func (*Taints) Type() string { return "taints" }

func (t *Taints) String() string {
	var all []string
	for i := range *t {
		all = append(all, (*t)[i].ToString())
	}
	return strings.Join(all, ",")
}

func parseTaint(s string) (corev1.Taint, error) {
	bad := func(why string) (corev1.Taint, error) {
		return corev1.Taint{}, fmt.Errorf("%q is not allowed: must be key=value:Effect or key:Effect (%s)", s, why)
	}
	name, effect, ok := strings.Cut(s, ":")
	if !ok {
		return bad("the effect is missing")
	}
	out := corev1.Taint{Effect: corev1.TaintEffect(effect)}
	out.Key, out.Value, _ = strings.Cut(name, "=")
	switch out.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return bad("effects are NoSchedule, PreferNoSchedule and NoExecute")
	}
	if msgs := validation.IsQualifiedName(out.Key); len(msgs) > 0 {
		return bad("key: " + msgs[0])
	}
	if msgs := validation.IsValidLabelValue(out.Value); len(msgs) > 0 {
		return bad("value: " + msgs[0])
	}
	return out, nil
}
