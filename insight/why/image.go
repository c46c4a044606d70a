package why

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// imageRules: the image of a container cannot be had.
func imageRules() []Rule {
	return []Rule{
		imageRule("image-name-invalid", "the image's name is not a valid reference", func(f pull) *insight.Finding {
			if f.reason != "InvalidImageName" {
				return nil
			}
			return f.found("%q is not a name that an image can have", "A name is [registry/]repository[:tag][@digest], the repository in lower case.", f.image)
		}),
		imageRule("image-never-pulled", "the image is not on the node and imagePullPolicy is Never", func(f pull) *insight.Finding {
			if f.reason != "ErrImageNeverPull" {
				return nil
			}
			found := f.found("the image %q is not on node %s, and imagePullPolicy Never forbids to fetch it", "", f.image, f.c.pod.Spec.NodeName)
			found.Mend = []insight.Mend{
				insight.Do("brings the image to the node", "peri image import FILE.tar"),
				workloadOf(f.c.s, f.c.pod).setContainer(f.c, map[string]any{"imagePullPolicy": "IfNotPresent"}, "lets the node fetch it"),
			}
			return found
		}),
		imageRule("image-registry-certificate", "the registry's certificate is not trusted", f("x509: |certificate signed by unknown|certificate is valid for|certificate has expired", func(f pull) *insight.Finding {
			return f.found("the certificate of registry %s is not accepted", "The node trusts the authorities of its operating system only.", f.registry())
		})),
		imageRule("image-registry-plain", "the registry speaks HTTP where HTTPS is expected", f("server gave HTTP response to HTTPS client", func(f pull) *insight.Finding {
			return f.found("registry %s speaks plain HTTP, and HTTPS is expected", "Name it as a mirror with http:// if that is intended: --registry-mirror.", f.registry())
		})),
		imageRule("image-registry-unknown", "the registry's host name cannot be resolved", f("no such host|server misbehaving|Temporary failure in name resolution", func(f pull) *insight.Finding {
			found := f.found("the host name of registry %s cannot be resolved on node %s", "Either the image's name has a mistake in front of its first slash, or the node's DNS does not work.", f.registry(), f.c.pod.Spec.NodeName)
			found.Mend = append(found.Mend, insight.Do("on the node: is its DNS right?", "cat /etc/resolv.conf"))
			return found
		})),
		imageRule("image-registry-unreachable", "no connection to the registry can be made", f("connection refused|i/o timeout|network is unreachable|no route to host|TLS handshake timeout|context deadline exceeded|connection reset", func(f pull) *insight.Finding {
			found := f.found("registry %s cannot be reached from node %s", "The node could not connect: the registry is down, its port is wrong, or a firewall is between.", f.registry(), f.c.pod.Spec.NodeName)
			found.Mend = append(found.Mend, insight.Do("on the node: does it answer?", "curl -v https://"+f.registry()+"/v2/"), insight.Do("without a registry: take in an archive", "peri image import FILE.tar"))
			return found
		})),
		imageRule("image-rate-limited", "the registry allows no more pulls for now", f("toomanyrequests|429 Too Many", func(f pull) *insight.Finding {
			return f.found("registry %s allows no more pulls for now", "Pulls without an account share a small limit: give credentials, or use a mirror.", f.registry())
		})),
		imageRule("image-secret-missing", "a Secret of imagePullSecrets is missing", func(f pull) *insight.Finding {
			if !denied.MatchString(f.message) {
				return nil
			}
			for _, ref := range f.c.pod.Spec.ImagePullSecrets {
				if !insight.Missing[*corev1.Secret](f.c.s, f.c.pod.Namespace, ref.Name) {
					continue
				}
				found := f.found("the credentials for registry %s are missing: there is no Secret %q in namespace %s", "", f.registry(), ref.Name, f.c.pod.Namespace)
				found.Mend = []insight.Mend{f.makeSecret(ref.Name)}
				return found
			}
			return nil
		}),
		imageRule("image-credentials", "the registry refuses the credentials, or there are none", f(denied.String(), func(f pull) *insight.Finding {
			names := make([]string, 0, len(f.c.pod.Spec.ImagePullSecrets))
			for _, ref := range f.c.pod.Spec.ImagePullSecrets {
				if insight.Missing[*corev1.Secret](f.c.s, f.c.pod.Namespace, ref.Name) {
					return nil // the rule above
				}
				names = append(names, ref.Name)
			}
			if len(names) > 0 {
				found := f.found("registry %s refuses the credentials in Secret %s", "", f.registry(), strings.Join(names, ", "))
				found.Mend = append([]insight.Mend{f.makeSecret(names[0])}, found.Mend...)
				return found
			}
			found := f.found("registry %s wants credentials for %q, and the pod has no imagePullSecrets", "Many registries answer the same for a repository that does not exist.", f.registry(), f.image)
			found.Mend = append([]insight.Mend{f.makeSecret("registry"),
				workloadOf(f.c.s, f.c.pod).set(map[string]any{"imagePullSecrets": []any{map[string]any{"name": "registry"}}}, "lets the pods use it")}, found.Mend...)
			return found
		})),
		imageRule("image-architecture", "the image is not built for the node's platform", f("no match(ing manifest)? for .*platform|no matching manifest for", func(f pull) *insight.Finding {
			return f.found("the image %q is not built for the platform of node %s%s", "", f.image, f.c.pod.Spec.NodeName, platform(f.c.s, f.c.pod))
		})),
		imageRule("image-disk-full", "the node has no room for the image", f("no space left on device|disk quota exceeded", func(f pull) *insight.Finding {
			found := f.found("node %s has no room for the image %q", "", f.c.pod.Spec.NodeName, f.image)
			found.Mend = []insight.Mend{insight.Do("on the node: which images can go?", "peri image ls"), insight.Do("on the node: removes one", "peri image rm IMAGE")}
			return found
		})),
		imageRule("image-repository-missing", "the registry has no such repository", f("repository .* (not found|does not exist)|name unknown|NAME_UNKNOWN|repository name not known", func(f pull) *insight.Finding {
			return f.found("registry %s has no repository %q", "", f.registry(), f.repository())
		})),
		imageRule("image-tag-missing", "the repository has no such tag or digest", f("not found|manifest unknown|MANIFEST_UNKNOWN", func(f pull) *insight.Finding {
			if f.message != "" && strings.Contains(f.message, "repository does not exist") {
				return nil
			}
			return f.found("registry %s has no image %q: the tag is missing, or the whole repository", "", f.registry(), f.image)
		})),
		signRule("image-pull", "the image cannot be fetched", func(f pull) *insight.Finding {
			return f.found("the image %q cannot be fetched", "", f.image)
		}),
	}
}

var denied = regexp.MustCompile(`(?i)unauthorized|authentication required|\b401\b|\b403\b|pull access denied|denied: |insufficient_scope|authorization failed`)

// A pull is one that failed.
type pull struct {
	c               *container
	image           string
	reason, message string
}

// pullReasons are those of a container that waits for its image.
var pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

func imageRule(name, summary string, check func(f pull) *insight.Finding) Rule {
	return onContainer(name, summary, func(c *container) *insight.Finding {
		reason, message := c.waiting()
		if !slices.Contains(pullReasons, reason) {
			return nil
		}
		if e := c.s.LastEvent(c.pod, "Failed"); e != nil && !strings.Contains(message, ": ") && strings.Contains(e.Message, c.spec.Image) {
			message += "\n" + e.Message // older kubelets say only that they wait
		}
		return check(pull{c, c.spec.Image, reason, message})
	})
}

// signRule is an imageRule for what the others do not know.
func signRule(name, summary string, check func(f pull) *insight.Finding) Rule {
	return imageRule(name, summary, func(f pull) *insight.Finding {
		found := check(f)
		if found != nil {
			found.Level = insight.Sign
		}
		return found
	})
}

// f limits a check to messages that match.
func f(pattern string, check func(f pull) *insight.Finding) func(f pull) *insight.Finding {
	re := regexp.MustCompile(pattern)
	return func(f pull) *insight.Finding {
		if f.reason == "InvalidImageName" || f.reason == "ErrImageNeverPull" || !re.MatchString(f.message) {
			return nil
		}
		return check(f)
	}
}

func (f pull) found(what, reason string, args ...any) *insight.Finding {
	w := workloadOf(f.c.s, f.c.pod)
	out := &insight.Finding{What: fmt.Sprintf(what, args...), Why: reason, Evidence: []string{shorten(f.c.waitLine())}}
	for _, e := range slices.Backward(f.c.s.Events(f.c.pod)) {
		if e.Reason == "Failed" && strings.HasPrefix(e.Message, "Failed to pull image") {
			out.Evidence = append(out.Evidence, shorten(f.c.s.EventLine(e)))
			break
		}
	}
	if w.ref.Kind == "Job" || w.ref.Kind == "CronJob" {
		out.Mend = []insight.Mend{w.edit("name an image that exists")}
		return out
	}
	out.Mend = append(out.Mend, insight.Do("names an image that exists", insight.Kubectl(w.ref.Namespace, "set image %s %s=IMAGE:TAG", w.ref, f.c.spec.Name)))
	out.Mend = append(out.Mend, w.undo(f.c.s)...)
	return out
}

// registry is the host (and port) of the image's registry.
func (f pull) registry() string {
	named, err := reference.ParseNormalizedNamed(f.image)
	if err != nil {
		return f.image
	}
	return reference.Domain(named)
}

func (f pull) repository() string {
	named, err := reference.ParseNormalizedNamed(f.image)
	if err != nil {
		return f.image
	}
	return reference.Path(named)
}

func (f pull) makeSecret(name string) insight.Mend {
	return insight.Do("makes credentials", insight.Kubectl(f.c.pod.Namespace, "create secret docker-registry %s --docker-server=%s --docker-username=USER --docker-password=PASSWORD", name, f.registry()))
}

// platform is the node's, in brackets.
func platform(s *insight.Snapshot, p *corev1.Pod) string {
	n, ok := insight.Get[*corev1.Node](s, "", p.Spec.NodeName)
	if !ok || n.Status.NodeInfo.Architecture == "" {
		return ""
	}
	return " (" + n.Status.NodeInfo.OperatingSystem + "/" + n.Status.NodeInfo.Architecture + ")"
}
