package batch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A cronField is one of the five fields of a schedule.
type cronField struct {
	min, max uint
	names    string // three-letter names from min on
}

var cronFields = []cronField{
	{0, 59, ""}, {0, 23, ""}, {1, 31, ""},
	{1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{0, 6, "sun mon tue wed thu fri sat"},
}

// checkSchedule checks the standard cron format: five fields, or one of the
// @ words. Names and wording are those of the parser that Kubernetes uses.
func checkSchedule(spec string) error {
	if strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ=") {
		zone, rest, ok := strings.Cut(spec, " ")
		if !ok {
			return errors.New("empty spec string")
		}
		_, name, _ := strings.Cut(zone, "=")
		if _, err := time.LoadLocation(name); err != nil {
			return fmt.Errorf("provided bad location %s: %w", name, err)
		}
		spec = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(spec, "@") {
		return checkDescriptor(spec)
	}
	parts := strings.Fields(spec)
	if len(parts) != len(cronFields) {
		return fmt.Errorf("expected exactly %d fields, found %d: %v", len(cronFields), len(parts), parts)
	}
	for i, part := range parts {
		for expr := range strings.SplitSeq(part, ",") {
			if err := cronFields[i].check(expr); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDescriptor(spec string) error {
	switch spec {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	if every, ok := strings.CutPrefix(spec, "@every "); ok {
		if _, err := time.ParseDuration(every); err != nil {
			return fmt.Errorf("failed to parse duration %s: %w", spec, err)
		}
		return nil
	}
	return fmt.Errorf("unrecognized descriptor: %s", spec)
}

// check checks one expression: "*", "5", "1-5", each with "/step".
func (f cronField) check(expr string) error {
	body, step, stepped := strings.Cut(expr, "/")
	if strings.Contains(step, "/") {
		return fmt.Errorf("too many slashes: %s", expr)
	}
	from, to, ranged := strings.Cut(body, "-")
	start, end := f.min, f.max
	if from != "*" && from != "?" {
		var err error
		if start, err = f.number(from); err != nil {
			return err
		}
		switch {
		case strings.Contains(to, "-"):
			return fmt.Errorf("too many hyphens: %s", expr)
		case ranged:
			if end, err = f.number(to); err != nil {
				return err
			}
		case !stepped:
			end = start
		}
	}
	if stepped {
		n, err := parseCron(step)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("step of range should be a positive number: %s", expr)
		}
	}
	switch {
	case start < f.min:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", start, f.min, expr)
	case end > f.max:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", end, f.max, expr)
	case start > end:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", start, end, expr)
	}
	return nil
}

func (f cronField) number(s string) (uint, error) {
	if len(s) == 3 {
		if i := strings.Index(f.names, strings.ToLower(s)); i >= 0 && i%4 == 0 {
			return f.min + uint(i/4), nil
		}
	}
	return parseCron(s)
}

func parseCron(s string) (uint, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("failed to parse int from %s: %w", s, err)
	}
	if n < 0 {
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, s)
	}
	return uint(n), nil
}
