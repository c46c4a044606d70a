package insight

import (
	"fmt"
	"strings"
)

// A Level says what a finding is in the chain from cause to effect.
type Level int

// Levels, the more telling first.
const (
	// Cause: nothing behind it needs to be looked for.
	Cause Level = iota
	// Sign: something is wrong here; a Cause about the same thing says it better.
	Sign
	// Effect: it follows from what is wrong with an object that this one needs; it is
	// the root only if nothing is found there.
	Effect
	// Note: it does no harm yet.
	Note
)

// String is its name in JSON.
func (l Level) String() string { return [...]string{"cause", "sign", "effect", "note"}[l] }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// A Finding is one thing that is wrong.
type Finding struct {
	Rule  string `json:"rule"`
	Level Level  `json:"level"`
	// Object is what it is about, Part what of it: "container web", "port http".
	Object Ref    `json:"object"`
	Part   string `json:"part,omitempty"`
	// What is a sentence without an end: what is wrong.
	What string `json:"what"`
	// Why explains it where that is not plain.
	Why      string   `json:"why,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
	Mend     []Mend   `json:"mend,omitempty"`
	// Also are other objects with the same finding: replicas.
	Also []Ref `json:"also,omitempty"`
}

// A Mend is one way to put it right.
type Mend struct {
	// Command is what to type; words in capitals are for the reader to fill in.
	Command string `json:"command"`
	// Note says what it does, or when to choose it.
	Note string `json:"note,omitempty"`
	// Change does it without the command, where that is safe; nil otherwise.
	Change *Change `json:"change,omitempty"`
}

// A Change is one request to the API.
type Change struct {
	Verb      string `json:"verb"` // create, patch, delete
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Patch is the type of the body of a patch: strategic, merge or json.
	Patch string `json:"patch,omitempty"`
	Body  string `json:"body,omitempty"`
}

// Patched is a strategic merge patch of an object of a built-in kind, with the
// command that does the same.
func Patched(group, version, resource string, of Ref, body, note string) Mend {
	name := resource
	if group != "" {
		name = resource + "." + group
	}
	return Mend{
		Command: Kubectl(of.Namespace, "patch %s %s -p '%s'", name, of.Name, body), Note: note,
		Change: &Change{Verb: "patch", Group: group, Version: version, Resource: resource, Namespace: of.Namespace, Name: of.Name, Patch: "strategic", Body: body},
	}
}

// JSONPatched is a JSON patch (RFC 6902) of an object.
func JSONPatched(group, version, resource string, of Ref, body, note string) Mend {
	m := Patched(group, version, resource, of, body, note)
	m.Change.Patch = "json"
	m.Command = strings.Replace(m.Command, " -p '", " --type=json -p '", 1)
	return m
}

// Deleted deletes an object.
func Deleted(group, version, resource string, of Ref, note string) Mend {
	return Mend{
		Command: Kubectl(of.Namespace, "delete %s %s", strings.TrimSuffix(resource, "s"), of.Name), Note: note,
		Change: &Change{Verb: "delete", Group: group, Version: version, Resource: resource, Namespace: of.Namespace, Name: of.Name},
	}
}

// Kubectl is a command line of kubectl.
func Kubectl(namespace, format string, args ...any) string {
	in := ""
	if namespace != "" {
		in = "-n " + namespace + " "
	}
	return "peri kubectl " + in + fmt.Sprintf(format, args...)
}

// Do is a mend by hand.
func Do(note, command string) Mend { return Mend{Command: command, Note: note} }
