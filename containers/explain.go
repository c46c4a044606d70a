package containers

import (
	"fmt"
	"regexp"
	"strings"
)

// notFound is how crun says that there is no such program.
var notFound = regexp.MustCompile("^executable file [`'](.*)['`] not found in \\$PATH(: .*)?$")

// explain puts an OCI runtime's complaint about a program that cannot be run into
// the words that people search for, whichever runtime it is.
func explain(err error) error {
	m := notFound.FindStringSubmatch(strings.TrimSpace(err.Error()))
	switch {
	case m == nil:
		return err
	case strings.Contains(m[1], "/"):
		return fmt.Errorf("unable to start container process: exec: %q: stat %s: no such file or directory", m[1], m[1])
	}
	return fmt.Errorf("unable to start container process: exec: %q: executable file not found in $PATH", m[1])
}
