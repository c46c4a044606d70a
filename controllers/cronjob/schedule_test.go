package cronjob_test

import (
	"testing"
	"time"

	"github.com/periplus/periplus/controllers/cronjob"
)

func TestNext(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02 15:04:05"
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zone data:", err)
	}
	for _, test := range []struct {
		schedule, from, want string
		zone                 *time.Location
	}{
		{"*/5 * * * *", "2026-03-01 10:02:30", "2026-03-01 10:05:00", time.UTC},
		{"0 0 1 1 *", "2026-03-01 10:02:30", "2027-01-01 00:00:00", time.UTC},
		{"@hourly", "2026-12-31 23:59:59", "2027-01-01 00:00:00", time.UTC},
		{"30 4 1,15 * 5", "2026-03-02 00:00:00", "2026-03-06 04:30:00", time.UTC}, // either day field
		{"0 12 * * mon-wed", "2026-03-05 00:00:00", "2026-03-09 12:00:00", time.UTC},
		{"0 0 29 feb *", "2026-03-01 00:00:00", "2028-02-29 00:00:00", time.UTC},
		{"0 0 31 2 *", "2026-03-01 00:00:00", "", time.UTC},
		{"1-10/3 * * * *", "2026-03-01 10:04:00", "2026-03-01 10:07:00", time.UTC},
		{"30 2 * * *", "2026-03-29 00:00:00", "2026-03-30 02:30:00", berlin}, // the hour that does not exist
		{"0 9 * * *", "2026-03-28 10:00:00", "2026-03-29 09:00:00", berlin},  // a day of 23 hours
		{"@every 90s", "2026-03-01 10:00:00", "2026-03-01 10:01:30", time.UTC},
	} {
		s, err := cronjob.ParseSchedule(test.schedule)
		if err != nil {
			t.Errorf("%s: %v", test.schedule, err)
			continue
		}
		from, err := time.ParseInLocation(layout, test.from, test.zone)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next := s.Next(from); !next.IsZero() {
			got = next.Format(layout)
		}
		if got != test.want {
			t.Errorf("%s after %s: %s, want %s", test.schedule, test.from, got, test.want)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 1-3,7 ? jan-mar sun", "@daily", "@every 1h", "TZ=UTC 0 0 * * *", "60 * * * *", "1-0 * * * *", "*/0 * * * *"} {
		f.Add(s)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := cronjob.ParseSchedule(text)
		if err != nil {
			return
		}
		if next := s.Next(from); !next.IsZero() && !next.After(from) {
			t.Errorf("%q: next %s is not after %s", text, next, from)
		}
	})
}
