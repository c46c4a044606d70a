package cronjob

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Schedule is a parsed cron expression: five fields (minute, hour, day of month,
// month, day of week), one of @yearly @annually @monthly @weekly @daily @midnight
// @hourly, or "@every DURATION".
type Schedule struct {
	minute, hour, day, month, weekday uint64 // bit n: value n is allowed
	anyDay, anyWeekday                bool   // the field is * or ?
	every                             time.Duration
	zone                              *time.Location // of a TZ= prefix; nil for none
}

type field struct {
	name     string
	min, max int
	names    map[string]int
}

var fields = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, map[string]int{"jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12}},
	{"day of week", 0, 6, map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}},
}

var macros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// ParseSchedule reads a cron expression. An error names the field and its value.
func ParseSchedule(text string) (*Schedule, error) {
	s := &Schedule{}
	spec := strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(spec, "CRON_TZ="); ok {
		spec = "TZ=" + rest
	}
	if rest, ok := strings.CutPrefix(spec, "TZ="); ok {
		name, expression, _ := strings.Cut(rest, " ")
		zone, err := time.LoadLocation(name)
		if err != nil {
			return nil, fmt.Errorf("provided bad location %s: %w", name, err)
		}
		s.zone, spec = zone, strings.TrimSpace(expression)
	}
	if rest, ok := strings.CutPrefix(spec, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(rest))
		if err != nil {
			return nil, fmt.Errorf("failed to parse duration %s: %w", spec, err)
		}
		s.every = max(time.Second, d.Truncate(time.Second))
		return s, nil
	}
	if strings.HasPrefix(spec, "@") {
		expanded, ok := macros[spec]
		if !ok {
			return nil, fmt.Errorf("unrecognized descriptor: %s", spec)
		}
		spec = expanded
	}
	parts := strings.Fields(spec)
	if len(parts) != len(fields) {
		return nil, fmt.Errorf("expected exactly 5 fields, found %d: [%s]", len(parts), text)
	}
	targets := [5]*uint64{&s.minute, &s.hour, &s.day, &s.month, &s.weekday}
	for i, part := range parts {
		mask, err := parseField(part, fields[i])
		if err != nil {
			return nil, err
		}
		*targets[i] = mask
	}
	s.anyDay = parts[2][0] == '*' || parts[2][0] == '?'
	s.anyWeekday = parts[4][0] == '*' || parts[4][0] == '?'
	return s, nil
}

func parseField(text string, f field) (uint64, error) {
	var mask uint64
	for part := range strings.SplitSeq(text, ",") {
		spread, step, stepped := strings.Cut(part, "/")
		n := 1
		if stepped {
			var err error
			if n, err = strconv.Atoi(step); err != nil || n < 1 {
				return 0, fmt.Errorf("%s: step %q is not a positive number", f.name, step)
			}
		}
		first, last := f.min, f.max
		if spread != "*" && spread != "?" {
			from, to, ranged := strings.Cut(spread, "-")
			var err error
			if first, err = f.value(from); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if last, err = f.value(to); err != nil {
					return 0, err
				}
			case !stepped:
				last = first
			}
		}
		if first > last {
			return 0, fmt.Errorf("%s: beginning of range (%d) beyond end of range (%d): %s", f.name, first, last, part)
		}
		for v := first; v <= last; v += n {
			mask |= 1 << v
		}
	}
	return mask, nil
}

func (f field) value(text string) (int, error) {
	if v, ok := f.names[strings.ToLower(text)]; ok {
		return v, nil
	}
	v, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a number", f.name, text)
	}
	if v < f.min || v > f.max {
		return 0, fmt.Errorf("%s: %d is not between %d and %d", f.name, v, f.min, f.max)
	}
	return v, nil
}

// Next returns the first time after t, in t's time zone (or that of the
// expression's own TZ= prefix); zero if there is none within five years.
func (s *Schedule) Next(t time.Time) time.Time {
	if s.every > 0 {
		return t.Add(s.every - time.Duration(t.Nanosecond()))
	}
	original := t.Location()
	if s.zone != nil {
		t = t.In(s.zone)
	}
	t = t.Truncate(time.Second).Add(time.Minute - time.Duration(t.Second())*time.Second)
	for limit := t.Year() + 5; t.Year() <= limit; {
		// From the coarsest field to the finest; each jump lands at the start of
		// the next unit and begins anew.
		switch {
		case s.month&(1<<int(t.Month())) == 0:
			t = later(t, time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, t.Location()))
		case !s.dayMatches(t):
			t = later(t, time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location()))
		case s.hour&(1<<t.Hour()) == 0:
			t = t.Add(time.Hour - time.Duration(t.Minute())*time.Minute)
		case s.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t.In(original)
		}
	}
	return time.Time{}
}

// later guards against a clock change at midnight, which can make a date's start
// fall before the time it is looked for from.
func later(t, next time.Time) time.Time {
	if next.After(t) {
		return next
	}
	return t.Add(time.Hour)
}

// dayMatches follows cron: when both day fields are restricted, either suffices.
func (s *Schedule) dayMatches(t time.Time) bool {
	day := s.day&(1<<t.Day()) != 0
	weekday := s.weekday&(1<<int(t.Weekday())) != 0
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}
