package tour

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/periplus/periplus/test/netlab"
)

// web runs nginx, which waits for the name of a Service that does not exist yet.
func (t *tour) web(ctx context.Context) error {
	if err := t.all(ctx, "kubectl apply -f storage.yaml"); err != nil {
		return err
	}
	if err := t.pushing.Wait(); err != nil {
		return fmt.Errorf("images for the registry: %w", err)
	}
	t.ran = time.Now()
	if err := t.all(ctx, "peri run web --image=nginx --port=80 --expose --serviceaccount=web --overrides=@web.yaml"); err != nil {
		return err
	}
	if _, err := t.until(ctx, server, "kubectl get pods", func(out string) error { return have(out, "Init:2/4") }); err != nil {
		return err
	}
	if _, err := t.until(ctx, server, "kubectl logs deployment/web -c wait-for-api --tail=1", func(out string) error { return have(out, "waiting for api") }); err != nil {
		return err
	}
	t.proved("its sidecar runs, and its first init container waits for the name api")
	return nil
}

// api brings what nginx waits for.
func (t *tour) api(ctx context.Context) error {
	err := t.all(ctx,
		"kubectl apply -f api.yaml",
		"kubectl wait deployment --all --for=condition=Available --timeout=90s",
		"kubectl get pods -o wide",
	)
	if err != nil {
		return err
	}
	claim, err := t.typed(ctx, server, "kubectl get pvc,pv")
	if err != nil {
		return err
	}
	if err := have(claim, "Bound"); err != nil {
		return err
	}
	t.proved("nginx went on when the name was there; pods on all nodes, a sidecar in each; the claim is bound to a volume of its size")
	return nil
}

// edge opens the cluster to the outside.
func (t *tour) edge(ctx context.Context) error {
	err := t.all(ctx,
		"kubectl apply -f edge.yaml",
		"kubectl wait service/edge --for=jsonpath='{.status.loadBalancer.ingress[2].ip}' --timeout=90s",
		"kubectl wait ingress/shop --for=jsonpath='{.status.loadBalancer.ingress[2].ip}' --timeout=90s",
		"kubectl get ingress,service",
	)
	if err != nil {
		return err
	}
	answers := []struct{ line, want string }{
		{"curl -sS http://shop.example.com:8080/", "This page was written by web-"},
		{"curl -sS http://api.example.com:8080/v1/", "v1"},
		{"curl -sS http://api.example.com:8080/v2/", "v2"},
		{"curl -sS http://shop.example.com:8080/api/", "v"},
	}
	for i, a := range answers {
		if _, err := t.until(ctx, outside, a.line, func(out string) error { return have(out, a.want) }); err != nil {
			return err
		}
		if i == 0 {
			t.first = time.Now()
		}
	}
	counts, err := t.tally(ctx, "for node in server one two; do curl -s --connect-to ::$node:8080 -w '%{http_code} from %{remote_ip}\\n' -o /dev/null 'http://shop.example.com:8080/?[1-20]'; done | sort | uniq -c")
	if err != nil {
		return err
	}
	for _, name := range []string{server, one, two} {
		if err := counts.within("200 from "+addresses[name], 20, 20); err != nil {
			return err
		}
	}
	headers, err := t.typed(ctx, outside, "curl -sS http://api.example.com:8080/v1/headers | grep -E '^(X-Forwarded-Host|X-Forwarded-Client-Cert|X-Request-Id|Traceparent|X-B3-Traceid)'")
	if err != nil {
		return err
	}
	if err := have(headers, "X-Forwarded-Host: [api.example.com:8080]", "X-Request-Id", "Traceparent"); err != nil {
		return err
	}
	t.proved("two hosts, two paths, three addresses; 60 of 60 requests answered; the first %.1f s after peri run", t.first.Sub(t.ran).Seconds())
	return nil
}

// log shows the timeline.
func (t *tour) log(ctx context.Context) error {
	trace, err := t.typed(ctx, server, "peri trace web")
	if err != nil {
		return err
	}
	steps := 0
	for line := range strings.Lines(trace) {
		if len(line) > 1 && line[0] >= '0' && line[0] <= '9' && strings.Contains(line, "s ") {
			steps++
		}
	}
	if err := have(trace, "stored", "scheduled", "bound", "sandbox created", "container started", "ready", "first answered request"); err != nil {
		return err
	}
	t.proved("%d steps, each with its component and how long it took", steps)
	return nil
}

// volume replaces the pod; what it had written is still there.
func (t *tour) volume(ctx context.Context) error {
	before, err := t.typed(ctx, outside, "curl -sS http://shop.example.com:8080/")
	if err != nil {
		return err
	}
	err = t.all(ctx, "kubectl delete pod -l app=web", "kubectl rollout status deployment/web --timeout=90s", "kubectl get pods -l app=web")
	if err != nil {
		return err
	}
	_, err = t.until(ctx, outside, "curl -sS http://shop.example.com:8080/", func(out string) error {
		if out != before {
			return fmt.Errorf("the page was %q and is %q", before, out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.proved("another pod, the same page: it went to the node with the volume")
	return nil
}

// why asks for something that cannot be.
func (t *tour) why(ctx context.Context) error {
	if err := t.all(ctx, "peri run huge --image=nginx --requests=cpu=1000"); err != nil {
		return err
	}
	_, err := t.until(ctx, server, "peri why deployment/huge", func(out string) error { return have(out, "Insufficient cpu") })
	if err != nil {
		return err
	}
	t.proved("the cause, the evidence, and what to do")
	return t.all(ctx, "kubectl delete deployment huge")
}

// without stops the only server: agents go on with what they know.
func (t *tour) without(ctx context.Context) error {
	t.prompt(server, "systemctl stop periplus   # here: SIGTERM")
	if err := t.running[server].Stop(ctx); err != nil {
		return err
	}
	delete(t.running, server)
	counts, err := t.tally(ctx, "for node in one two; do curl -s -H 'Host: api.example.com' -o /dev/null -w '%{http_code}\\n' \"http://$node/v1/?[1-100]\"; done | sort | uniq -c")
	if err != nil {
		return err
	}
	if err := counts.within("200", 200, 200); err != nil {
		return err
	}
	t.proved("200 of 200 requests answered by the agents")
	return t.start(ctx, server, "systemctl start periplus", (*netlab.Machine).Server)
}
