package run

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// options are the flags, as given.
type options struct {
	name      string
	args      []string // after "--"
	image     string
	restart   string
	replicas  int32
	replicSet bool
	port      string
	expose    bool
	env       []string
	labels    []string
	command   bool
	requests  string
	limits    string
	pull      string
	overrides string
	dryRun    string
	output    string
	stdin     bool
	tty       bool
	rm        bool
	quiet     bool
	account   string
	patience  time.Duration // until the pod to attach to runs
}

// wanted is what the flags ask for, checked.
type wanted struct {
	*options
	port      int32
	env       []corev1.EnvVar
	labels    map[string]string
	resources corev1.ResourceRequirements
}

// bad is the error of one argument: which, its value, what is allowed.
func bad(flag, value, allowed string) error {
	return fmt.Errorf("%s: %q is not allowed: %s", flag, value, allowed)
}

// check validates everything before anything is sent.
func (o *options) check() (*wanted, error) {
	w := &wanted{options: o}
	// The container is called the same, and containers have labels for names.
	if msgs := validation.IsDNS1123Label(o.name); len(msgs) > 0 {
		return nil, bad("NAME", o.name, msgs[0])
	}
	if o.image == "" {
		return nil, fmt.Errorf("--image is missing: name the image to run, like --image=nginx")
	}
	if _, err := reference.ParseNormalizedNamed(o.image); err != nil {
		return nil, bad("--image", o.image, err.Error())
	}
	switch corev1.RestartPolicy(o.restart) {
	case corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	default:
		return nil, bad("--restart", o.restart, "must be Always (a Deployment), OnFailure (a Job) or Never (a Pod)")
	}
	if o.replicas < 0 {
		return nil, bad("--replicas", strconv.Itoa(int(o.replicas)), "must be 0 or more")
	}
	if o.replicSet && o.restart != string(corev1.RestartPolicyAlways) {
		return nil, bad("--replicas", strconv.Itoa(int(o.replicas)), "only a Deployment (--restart=Always) has replicas")
	}
	switch corev1.PullPolicy(o.pull) {
	case "", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return nil, bad("--image-pull-policy", o.pull, "must be Always, IfNotPresent or Never")
	}
	switch o.dryRun {
	case "none", "client", "server":
	default:
		return nil, bad("--dry-run", o.dryRun, `must be "none", "client" or "server"`)
	}
	switch o.output {
	case "", "yaml", "json", "name":
	default:
		return nil, bad("--output", o.output, "must be yaml, json or name")
	}
	if err := w.lists(); err != nil {
		return nil, err
	}
	return w, w.interactive()
}

func (w *wanted) lists() error {
	o := w.options
	if o.port != "" {
		n, err := strconv.ParseInt(o.port, 10, 32)
		if err != nil || n < 1 || n > 65535 {
			return bad("--port", o.port, "must be a number between 1 and 65535")
		}
		w.port = int32(n)
	}
	if o.expose && w.port == 0 {
		return fmt.Errorf("--expose needs --port: which port is the Service for?")
	}
	if o.expose {
		if msgs := validation.IsDNS1035Label(o.name); len(msgs) > 0 {
			return bad("NAME", o.name, "as the name of a Service: "+msgs[0])
		}
	}
	for _, e := range o.env {
		k, v, ok := strings.Cut(e, "=")
		if msgs := validation.IsRelaxedEnvVarName(k); !ok || len(msgs) > 0 {
			return bad("--env", e, strings.Join(append([]string{"must be NAME=value"}, msgs...), "; "))
		}
		w.env = append(w.env, corev1.EnvVar{Name: k, Value: v})
	}
	w.labels = map[string]string{}
	for _, l := range o.labels {
		k, v, ok := strings.Cut(l, "=")
		if msgs := validation.IsQualifiedName(k); !ok || len(msgs) > 0 {
			return bad("--labels", l, strings.Join(append([]string{"must be key=value"}, msgs...), "; "))
		}
		if msgs := validation.IsValidLabelValue(v); len(msgs) > 0 {
			return bad("--labels", l, msgs[0])
		}
		w.labels[k] = v
	}
	return w.quantities()
}

func (w *wanted) quantities() error {
	var err error
	if w.resources.Requests, err = quantities("--requests", w.options.requests); err != nil {
		return err
	}
	if w.resources.Limits, err = quantities("--limits", w.options.limits); err != nil {
		return err
	}
	for name, limit := range w.resources.Limits {
		if request, ok := w.resources.Requests[name]; ok && request.Cmp(limit) > 0 {
			return bad("--requests", fmt.Sprintf("%s=%s", name, &request), fmt.Sprintf("must be less than or equal to %s limit of %s", name, &limit))
		}
	}
	return nil
}

func quantities(flag, s string) (corev1.ResourceList, error) {
	if s == "" {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, bad(flag, part, "must be resource=quantity, like cpu=100m,memory=64Mi")
		}
		if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
			return nil, bad(flag, part, msgs[0])
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, bad(flag, part, err.Error())
		}
		if q.Sign() < 0 {
			return nil, bad(flag, part, "must be greater than or equal to 0")
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, nil
}

func (w *wanted) interactive() error {
	switch {
	case w.tty && !w.stdin:
		return fmt.Errorf("--tty needs --stdin: a terminal without input is of no use")
	case w.rm && !w.stdin:
		return fmt.Errorf("--rm needs --stdin (-i): the object is deleted when you leave it")
	case w.patience <= 0:
		return bad("--pod-running-timeout", w.patience.String(), "must be more than 0")
	case w.stdin && w.dryRun != "none":
		return bad("--dry-run", w.dryRun, "there is nothing to attach to")
	case w.stdin && w.restart == string(corev1.RestartPolicyAlways) && w.replicas != 1:
		return bad("--replicas", strconv.Itoa(int(w.replicas)), "with --stdin there must be one")
	}
	return nil
}
