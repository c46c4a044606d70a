package imagepolicywebhook

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"
)

// config is upstream's: it has no kind.
//
//	imagePolicy:
//	  kubeConfigFile: /path/to/kubeconfig   whom to ask
//	  allowTTL: 50                          seconds; -1 keeps nothing, 0 is the default
//	  denyTTL: 50
//	  retryBackoff: 500                     milliseconds
//	  defaultAllow: true                    when nobody answers
type config struct {
	KubeConfigFile string        `json:"kubeConfigFile"`
	AllowTTL       time.Duration `json:"allowTTL"`
	DenyTTL        time.Duration `json:"denyTTL"`
	RetryBackoff   time.Duration `json:"retryBackoff"`
	DefaultAllow   bool          `json:"defaultAllow"`
}

func load(data []byte) (*config, error) {
	if len(data) == 0 {
		return nil, errors.New("no config specified")
	}
	var file struct {
		ImagePolicy config `json:"imagePolicy"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	c := &file.ImagePolicy
	for _, d := range []struct {
		name              string
		value             *time.Duration
		unit              time.Duration
		least, most, none time.Duration
	}{
		{"retryBackoff", &c.RetryBackoff, time.Millisecond, 1, 5 * time.Minute, 500 * time.Millisecond},
		{"allowTTL", &c.AllowTTL, time.Second, time.Second, 30 * time.Minute, 5 * time.Minute},
		{"denyTTL", &c.DenyTTL, time.Second, time.Second, 30 * time.Minute, 30 * time.Second},
	} {
		switch *d.value {
		case -1:
			*d.value = 0
		case 0:
			*d.value = d.none
		default:
			if *d.value *= d.unit; *d.value < d.least || *d.value > d.most {
				return nil, fmt.Errorf("%s: valid value is between %v and %v, got %v", d.name, d.least, d.most, *d.value)
			}
		}
	}
	return c, nil
}
