package lint

import (
	"fmt"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
)

// imageRules: what runs must be known, and the same everywhere.
func imageRules() []Rule {
	return []Rule{
		onContainer("latest-tag", Warning, true, "A tag that moves means that replicas run different programs, and that nobody can go back.", func(w workload, c *corev1.Container) *Finding {
			named, err := reference.ParseNormalizedNamed(c.Image)
			if err != nil {
				return nil
			}
			if _, ok := named.(reference.Digested); ok {
				return nil
			}
			tagged, ok := named.(reference.Tagged)
			if ok && tagged.Tag() != "latest" {
				return nil
			}
			what := fmt.Sprintf("image %s has no tag: it is latest", c.Image)
			if ok {
				what = fmt.Sprintf("image %s has the tag latest", c.Image)
			}
			return &Finding{What: what, Fix: w.containerFix(c, "image: %s:VERSION\n", reference.FamiliarName(named))}
		}),
		onContainer("image-name", Error, true, "Such an image cannot be pulled.", func(w workload, c *corev1.Container) *Finding {
			if c.Image == "" {
				return &Finding{What: "has no image", Fix: w.containerFix(c, "image: IMAGE:VERSION\n")}
			}
			if _, err := reference.ParseNormalizedNamed(c.Image); err != nil {
				return &Finding{What: fmt.Sprintf("image %q is not a valid name: %v", c.Image, err), Fix: w.containerFix(c, "image: IMAGE:VERSION\n")}
			}
			return nil
		}),
		onContainer("pull-always", Advice, true, "Every start asks the registry: when that is down, nothing can be restarted.", func(w workload, c *corev1.Container) *Finding {
			named, err := reference.ParseNormalizedNamed(c.Image)
			if err != nil || c.ImagePullPolicy != corev1.PullAlways {
				return nil
			}
			if t, ok := named.(reference.Tagged); !ok || t.Tag() == "latest" {
				return nil // needed there
			}
			return &Finding{What: "is pulled at every start, though its tag is fixed", Fix: w.containerFix(c, "imagePullPolicy: IfNotPresent\n")}
		}),
	}
}
