package tour

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// tally types a line that ends with "sort | uniq -c" outside.
func (t *tour) tally(ctx context.Context, line string) (tally, error) {
	out, err := t.typed(ctx, outside, line)
	if err != nil {
		return nil, err
	}
	return count(out)
}

// answers is a line that asks the same many times, over one connection, and counts
// what comes back.
func answers(url string, times int, flags string) string {
	return fmt.Sprintf("curl -s %s'%s?[1-%d]' | sort | uniq -c", flags, url, times)
}

// codes counts statuses instead of texts.
const codes = `-o /dev/null -w '%{http_code}\n' `

// applied applies a manifest and waits until an answer from outside has a header that
// only it gives.
func (t *tour) applied(ctx context.Context, file, url, header string) error {
	if err := t.all(ctx, "kubectl apply -f "+file); err != nil {
		return err
	}
	_, err := t.until(ctx, outside, "curl -s -o /dev/null -D - "+url+" | grep -i '^x-'", func(out string) error { return have(strings.ToLower(out), header) })
	return err
}

const shopAPI = "http://shop.example.com:8080/api/"

// strict refuses plain text.
func (t *tour) strict(ctx context.Context) error {
	if err := t.all(ctx, "peri run stranger -n default --image=busybox --restart=Never -- sleep 3600", "kubectl wait -n default pod/stranger --for=condition=Ready --timeout=90s"); err != nil {
		return err
	}
	const call = "kubectl exec -n default stranger -- wget -q -O- http://api.shop/"
	if _, err := t.typed(ctx, server, call); err != nil {
		return err
	}
	if err := t.all(ctx, "kubectl apply -f strict.yaml", "kubectl get peerauthentications"); err != nil {
		return err
	}
	if _, err := t.until(ctx, server, call, func(out string) error { return have(out, "wget: error getting response") }); err != nil {
		return err
	}
	if err := t.all(ctx, "kubectl delete -n default pod stranger --now"); err != nil {
		return err
	}
	for _, c := range []struct{ url, only string }{{"http://api.example.com:8080/v1/", "v1"}, {shopAPI, ""}} {
		counts, err := t.tally(ctx, answers(c.url, 60, ""))
		if err != nil {
			return err
		}
		if n := counts["v1"] + counts["v2"]; n != 60 || c.only != "" && counts[c.only] != 60 {
			return fmt.Errorf("answers of %s: %v", c.url, counts)
		}
	}
	metrics, err := t.typed(ctx, server, `curl -s http://$(kubectl get pods -l version=v1 -o jsonpath='{.items[0].status.podIP}'):15020/stats/prometheus | grep ^istio_requests_total | grep -oE '(source_principal|connection_security_policy)="[^"]+"' | paste - - | sort -u`)
	if err != nil {
		return err
	}
	if err := have(metrics, "mutual_tls", "sa/web", "sa/periplus-ingress"); err != nil {
		return err
	}
	t.proved("a pod without a sidecar is refused; the edge, on each node, and nginx call with certificates of their own")
	return nil
}

// canary splits what goes to the API.
func (t *tour) canary(ctx context.Context) error {
	if err := t.applied(ctx, "canary.yaml", shopAPI, "x-route: canary"); err != nil {
		return err
	}
	counts, err := t.tally(ctx, answers(shopAPI, 400, ""))
	if err != nil {
		return err
	}
	// 40 are expected; beyond these bounds is once in a hundred thousand tours.
	if err := errors.Join(counts.within("v2", 14, 70), counts.within("v1", 330, 386)); err != nil {
		return err
	}
	t.proved("of 400 requests from outside %.1f %% went to v2", float64(counts["v2"])/4)
	return nil
}

// limit bounds the orders.
func (t *tour) limit(ctx context.Context) error {
	if err := t.applied(ctx, "limit.yaml", shopAPI, "x-limit: orders"); err != nil {
		return err
	}
	counts, err := t.tally(ctx, answers(shopAPI+"orders", 250, codes))
	if err != nil {
		return err
	}
	if err := errors.Join(counts.within("200", 100, 249), counts.within("429", 1, 150)); err != nil {
		return err
	}
	others, err := t.tally(ctx, answers(shopAPI, 100, codes))
	if err != nil {
		return err
	}
	if err := others.only("200"); err != nil {
		return err
	}
	t.proved("%d orders were taken, then 429 Too Many Requests; other paths have no limit", counts["200"])
	return nil
}

// policy says who may change something.
func (t *tour) policy(ctx context.Context) error {
	if err := t.all(ctx, "kubectl apply -f policy.yaml"); err != nil {
		return err
	}
	// All pods of v1 refuse it: 20 in turn cannot miss one.
	_, err := t.until(ctx, outside, answers("http://api.example.com:8080/v1/baskets", 20, "-X DELETE "+codes), func(out string) error {
		counts, err := count(out)
		if err != nil {
			return err
		}
		return counts.only("403")
	})
	if err != nil {
		return err
	}
	said, err := t.typed(ctx, outside, "curl -s -X DELETE http://api.example.com:8080/v1/baskets")
	if err != nil {
		return err
	}
	if err := have(said, "RBAC: access denied"); err != nil {
		return err
	}
	for _, c := range []struct{ flags, url, want string }{
		{"-X POST ", "http://api.example.com:8080/v1/baskets", "403"},
		{"-X POST ", shopAPI + "baskets", "200"},
		{"", "http://api.example.com:8080/v1/baskets", "200"},
	} {
		out, err := t.typed(ctx, outside, "curl -s "+c.flags+codes+c.url)
		if err != nil {
			return err
		}
		if strings.TrimSpace(out) != c.want {
			return fmt.Errorf("%s%s: status %s, want %s", c.flags, c.url, strings.TrimSpace(out), c.want)
		}
	}
	t.proved("reading is allowed to all; ordering to nginx, by its certificate, and not to the edge; deleting to nobody")
	return nil
}

// outlier brings a pod that fails; its client leaves it out.
func (t *tour) outlier(ctx context.Context) error {
	err := t.all(ctx, "kubectl apply -f outlier.yaml -f broken.yaml", "kubectl rollout status deployment/api-broken --timeout=90s", "kubectl get pods -l version=v1")
	if err != nil {
		return err
	}
	failures := 0
	_, err = t.until(ctx, outside, answers(shopAPI, 100, codes), func(out string) error {
		counts, err := count(out)
		if err != nil {
			return err
		}
		if failures += counts["500"]; failures < 3 {
			return errors.New("the broken pod has not been asked three times yet")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if failures != 3 {
		return fmt.Errorf("%d failures, want 3", failures)
	}
	then, err := t.tally(ctx, answers(shopAPI, 200, codes))
	if err != nil {
		return err
	}
	if err := then.only("200"); err != nil {
		return err
	}
	t.proved("3 failures, and the broken pod got no further request, though Kubernetes calls it Ready")
	return t.all(ctx, "kubectl delete -f broken.yaml")
}
