package metrics

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Bounds of what a kubelet may answer.
const (
	maxAnswer = 64 << 20
	maxLine   = 64 << 10
)

var errNoFigures = errors.New("the kubelet reports no figures of its node")

// parse reads a kubelet's answer (Prometheus' text format) that came at a time,
// which counts for samples without one of their own. Other metrics are skipped.
func parse(r io.Reader, received time.Time) (*reading, error) {
	out := &reading{pods: map[types.NamespacedName]map[string]point{}}
	lines := bufio.NewScanner(io.LimitReader(r, maxAnswer))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		name, labels, value, at, ok := parseLine(lines.Text())
		if !ok {
			continue
		}
		if at.IsZero() {
			at = received
		}
		switch name {
		case "node_cpu_usage_seconds_total":
			out.node.at, out.node.cpu = at, uint64(value*1e9)
		case "node_memory_working_set_bytes":
			out.node.memory = uint64(value)
		case "container_cpu_usage_seconds_total":
			out.container(labels, func(p *point) { p.at, p.cpu = at, uint64(value*1e9) })
		case "container_memory_working_set_bytes":
			out.container(labels, func(p *point) { p.memory = uint64(value) })
		case "container_start_time_seconds":
			out.container(labels, func(p *point) { p.start = time.UnixMicro(int64(value * 1e6)) })
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if out.node.at.IsZero() {
		return nil, errNoFigures
	}
	for pod, containers := range out.pods {
		for name, p := range containers {
			if p.at.IsZero() || p.cpu == 0 && p.memory == 0 { // it has ended, or not begun
				delete(containers, name)
			}
		}
		if len(containers) == 0 {
			delete(out.pods, pod)
		}
	}
	return out, nil
}

func (r *reading) container(labels map[string]string, set func(*point)) {
	pod := types.NamespacedName{Namespace: labels["namespace"], Name: labels["pod"]}
	containers := r.pods[pod]
	if containers == nil {
		containers = map[string]point{}
		r.pods[pod] = containers
	}
	p := containers[labels["container"]]
	set(&p)
	containers[labels["container"]] = p
}

// wanted are the beginnings of the names that parse knows.
var wanted = []string{"node_", "container_cpu_", "container_memory_", "container_start_"}

// parseLine reads a sample: name{label="value",…} value [milliseconds].
func parseLine(line string) (name string, labels map[string]string, value float64, at time.Time, ok bool) {
	known := false
	for _, w := range wanted {
		known = known || strings.HasPrefix(line, w)
	}
	if !known {
		return
	}
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return
	}
	name = line[:end]
	rest := line[end:]
	if rest[0] == '{' {
		if labels, rest, ok = parseLabels(rest[1:]); !ok {
			return
		}
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return name, labels, 0, at, false
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(value >= 0 && value < 1<<62) {
		return name, labels, 0, at, false
	}
	if len(fields) > 1 {
		ms, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return name, labels, 0, at, false
		}
		at = time.UnixMilli(ms)
	}
	return name, labels, value, at, true
}

// parseLabels reads label="value",…} and returns what follows.
func parseLabels(s string) (labels map[string]string, rest string, ok bool) {
	labels = map[string]string{}
	for {
		if rest, ok := strings.CutPrefix(s, "}"); ok {
			return labels, rest, true
		}
		name, after, ok := strings.Cut(s, "=")
		if !ok {
			return nil, "", false
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			return nil, "", false
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, "", false
		}
		labels[strings.TrimSpace(name)] = value
		s = strings.TrimPrefix(after[len(quoted):], ",")
	}
}
