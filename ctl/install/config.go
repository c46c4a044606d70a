package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/app"
)

const configHead = "# The configuration of Periplus: the flags of \"peri up --help\" by their names.\n# Restart to use changes: systemctl restart periplus\n"

// settings are a configuration file's, by name.
type settings map[string]any

// readSettings reads what is there already; nothing is an empty file.
func readSettings(path string) (settings, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return settings{}, nil
	}
	if err != nil {
		return nil, err
	}
	s := settings{}
	if err := yaml.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return s, nil
}

// renamed are flags whose setting has another name.
var renamed = map[string]string{"kubeconfig-path": "kubeconfig", "registry-mirror": "registry-mirrors"}

// take adds the flags that were given to the settings.
func (s settings) take(f *pflag.FlagSet, own []string) error {
	var errs []error
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains(own, flag.Name) {
			return
		}
		name := flag.Name
		if other, ok := renamed[name]; ok {
			name = other
		}
		switch v := flag.Value.(type) {
		case pflag.SliceValue:
			s[name] = v.GetSlice()
		default:
			switch flag.Value.Type() {
			case "bool", "int":
				var value any
				if err := yaml.Unmarshal([]byte(flag.Value.String()), &value); err != nil {
					errs = append(errs, err)
				}
				s[name] = value
			case "stringToString":
				mirrors := map[string][]string{}
				for pair := range strings.SplitSeq(strings.Trim(flag.Value.String(), "[]"), ",") {
					if k, value, ok := strings.Cut(pair, "="); ok {
						mirrors[k] = append(mirrors[k], value)
					}
				}
				s[name] = mirrors
			default:
				s[name] = flag.Value.String()
			}
		}
	})
	return errors.Join(errs...)
}

// text is the file; every setting is checked as a start would.
func (s settings) text() ([]byte, error) {
	data := []byte{}
	if len(s) > 0 {
		var err error
		if data, err = yaml.Marshal(map[string]any(s)); err != nil {
			return nil, err
		}
	}
	c := app.Defaults()
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := c.Complete(); err != nil {
		return nil, err
	}
	return append([]byte(configHead), data...), nil
}
