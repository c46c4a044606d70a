package image

import (
	"fmt"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// parsePlatform reads "os/arch" or "os/arch/variant".
func parsePlatform(s string) (v1.Platform, error) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return v1.Platform{}, fmt.Errorf("platform %q must be os/arch or os/arch/variant", s)
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// platformRank says how well an index entry serves a platform: 0 not at all, more is better.
func platformRank(want v1.Platform, have *v1.Platform) int {
	switch {
	case have == nil || have.OS == "" && have.Architecture == "":
		return 1 // an index that says nothing about platforms
	case have.OS != want.OS || have.Architecture != want.Architecture:
		return 0
	case have.Variant == want.Variant:
		return 4
	case want.Variant == "" || have.Variant == "":
		return 3
	case want.Architecture == "arm" && have.Variant < want.Variant: // v7 runs v6
		return 2
	}
	return 0
}
