package apitest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// installTimeout bounds how long a definition may take to be served.
const installTimeout = time.Minute

// CRDInstallOptions say which definitions of custom resources are installed.
type CRDInstallOptions struct {
	// Scheme is not needed; it is here for suites that set it.
	Scheme *runtime.Scheme
	// Paths are files or directories. One that does not exist is an error if
	// ErrorIfPathMissing.
	Paths              []string
	ErrorIfPathMissing bool
	CRDs               []*apiextensionsv1.CustomResourceDefinition
	// MaxTime bounds the wait until all are served; default a minute. PollInterval is
	// not needed.
	MaxTime      time.Duration
	PollInterval time.Duration
	// CleanUpAfterUse is not needed: an environment's objects end with it.
	CleanUpAfterUse bool
	// WebhookOptions say where definitions with conversion webhooks are converted.
	WebhookOptions WebhookInstallOptions
}

// InstallCRDs installs definitions in any cluster and returns them when they are
// served. Those that exist are brought up to date.
func InstallCRDs(config *rest.Config, o CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return installCRDs(context.Background(), config, &o)
}

func installCRDs(ctx context.Context, config *rest.Config, o *CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all := o.CRDs
	err := documents(o.Paths, o.ErrorIfPathMissing, func(meta metav1.TypeMeta, data []byte) error {
		if meta.Kind != "CustomResourceDefinition" {
			return nil
		}
		if meta.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			return fmt.Errorf("apiVersion %s of a CustomResourceDefinition is not served: must be apiextensions.k8s.io/v1", meta.APIVersion)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, crd); err != nil {
			return err
		}
		all = append(all, crd)
		return nil
	})
	if err != nil || len(all) == 0 {
		return all, err
	}
	c, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	limit := o.MaxTime
	if limit <= 0 {
		limit = installTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errors.New("it took too long"))
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(all))
	for i, crd := range all {
		crd = crd.DeepCopy()
		o.WebhookOptions.convert(crd)
		group.Go(func() (err error) {
			if out[i], err = define(ctx, c.ApiextensionsV1().CustomResourceDefinitions(), crd); err != nil {
				return fmt.Errorf("definition %s: %w", crd.Name, err)
			}
			return nil
		})
	}
	return out, group.Wait()
}

// define makes or updates one definition, and waits until it is served.
func define(ctx context.Context, c typed.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	have, err := c.Create(ctx, crd, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if have, err = c.Get(ctx, crd.Name, metav1.GetOptions{}); err == nil {
			crd.ResourceVersion = have.ResourceVersion
			have, err = c.Update(ctx, crd, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		return nil, err
	}
	for {
		served, err := established(have)
		if served || err != nil {
			return have, err
		}
		w, err := c.Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", crd.Name).String(), ResourceVersion: have.ResourceVersion,
		})
		if err != nil {
			return nil, err
		}
		for e := range w.ResultChan() {
			if now, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition); ok {
				have = now
				break
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("it is not served yet: %w: %+v", context.Cause(ctx), have.Status.Conditions)
		}
	}
}

// established says whether a definition is served; an error, that it never will.
func established(crd *apiextensionsv1.CustomResourceDefinition) (bool, error) {
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return false, fmt.Errorf("its names are not accepted: %s", c.Message)
		case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
			return true, nil
		}
	}
	return false, nil
}
