package abac

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/authentication/user"
)

// The kind of a line.
const (
	Group   = "abac.authorization.kubernetes.io"
	Version = Group + "/v1beta1"
	Kind    = "Policy"
)

// A Policy allows some requests to some people. In each field "*" means any; a field
// that is empty matches nothing.
type Policy struct {
	User            string `json:"user,omitempty"`
	Group           string `json:"group,omitempty"`
	Readonly        bool   `json:"readonly,omitempty"` // reading only
	APIGroup        string `json:"apiGroup,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	NonResourcePath string `json:"nonResourcePath,omitempty"` // a * at the end: all paths below
}

// A line is a policy of either form.
type line struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Spec       *Policy `json:"spec"`
}

// Load reads a file of policies. An error names the line.
func Load(path string) ([]Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	policies, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("error reading policy file %s, %w", path, err)
	}
	return policies, nil
}

// Parse reads policies, one a line.
func Parse(data []byte) ([]Policy, error) {
	var out []Policy
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1) // a line may be as long as the file
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		p, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", n, text, err)
		}
		out = append(out, p)
	}
	return out, lines.Err()
}

func parse(text []byte) (Policy, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return Policy{}, err
	}
	switch {
	case l.Kind == "" && l.APIVersion == "":
		return old(text)
	case l.Kind != Kind || l.APIVersion != Version:
		return Policy{}, fmt.Errorf("no kind %q is registered for version %q: a policy is of kind %q in %q", l.Kind, l.APIVersion, Kind, Version)
	case l.Spec == nil:
		return Policy{}, errors.New("spec: required")
	}
	p := *l.Spec
	if p.User == "*" || p.Group == "*" {
		p.User, p.Group = "", user.AllAuthenticated
	}
	return p, nil
}

// old reads the form without a version, where an empty field means any.
func old(text []byte) (Policy, error) {
	var p Policy
	if err := json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	if p.User == "" && p.Group == "" || p.User == "*" || p.Group == "*" {
		p.User, p.Group = "", user.AllAuthenticated
	}
	p.NonResourcePath = ""
	if p.Namespace == "" && p.Resource == "" {
		p.NonResourcePath = "*"
	}
	for _, f := range []*string{&p.Namespace, &p.Resource} {
		if *f == "" {
			*f = "*"
		}
	}
	p.APIGroup = "*"
	return p, nil
}
