package all

import "github.com/periplus/periplus/apiserver/admission"

// What a plug-in is made of differs; an entry makes them all alike.

func plain(f func() admission.Plugin) func(Objects, []byte) (admission.Plugin, error) {
	return func(Objects, []byte) (admission.Plugin, error) { return f(), nil }
}

func reads[O any](f func(O) admission.Plugin) func(Objects, []byte) (admission.Plugin, error) {
	return func(objects Objects, _ []byte) (admission.Plugin, error) { return f(any(objects).(O)), nil }
}

func configured(f func([]byte) (admission.Plugin, error)) func(Objects, []byte) (admission.Plugin, error) {
	return func(_ Objects, config []byte) (admission.Plugin, error) { return f(config) }
}

func both[O any](f func(O, []byte) (admission.Plugin, error)) func(Objects, []byte) (admission.Plugin, error) {
	return func(objects Objects, config []byte) (admission.Plugin, error) { return f(any(objects).(O), config) }
}
