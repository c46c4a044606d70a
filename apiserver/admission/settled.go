package admission

import "k8s.io/apimachinery/pkg/runtime"

// Settled is Values for as long as nobody changes the object: the values are made once
// for all who look at the same version of it.
func (a *Attributes) Settled() func(*Match) (object, old runtime.Object, err error) {
	type pair struct{ object, old runtime.Object }
	made := map[Match]pair{}
	return func(m *Match) (runtime.Object, runtime.Object, error) {
		if p, ok := made[*m]; ok {
			return p.object, p.old, nil
		}
		object, old, err := a.Values(m)
		if err == nil {
			made[*m] = pair{object, old}
		}
		return object, old, err
	}
}
