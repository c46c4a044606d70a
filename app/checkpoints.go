package app

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/client/checkpoint"
	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/source"
)

func (c *Config) checkpointFile() string { return filepath.Join(c.agentDir(), "checkpoints.db") }

// checkpoints are what an agent knows without its server. A nil one knows nothing:
// servers have the API in the same process.
type checkpoints struct {
	config *Config
	log    *slog.Logger
	store  *checkpoint.Store
	pods   *checkpoint.Remembered
}

func openCheckpoints(c *Config, log *slog.Logger) (*checkpoints, error) {
	log = log.With(base.KeyComponent, "checkpoints")
	s, err := checkpoint.Open(c.checkpointFile(), log)
	if err != nil {
		return nil, err
	}
	return &checkpoints{config: c, log: log, store: s}, nil
}

// wire lets the informers of a worker remember, and those of its own pods and node.
func (k *checkpoints) wire(w *worker, c kubernetes.Interface) informers.SharedInformerFactory {
	w.kept = k
	k.pods = checkpoint.Pods(k.store, c, k.config.NodeName)
	node := checkpoint.Node(k.store, c, k.config.NodeName)
	w.pods = func(kubernetes.Interface) cache.SharedIndexInformer {
		return checkpoint.Informer(k.pods, &corev1.Pod{})
	}
	w.nodes = func(kubernetes.Interface) cache.SharedIndexInformer {
		return checkpoint.Informer(node, &corev1.Node{})
	}
	return client.NewFactory(c, checkpoint.NewSource(k.store, c))
}

// stage writes what is pending when the others have ended.
func (k *checkpoints) stage() stage {
	return stage{name: "checkpoints", run: func(ctx context.Context, ready func()) error {
		ready()
		<-ctx.Done()
		return k.store.Close()
	}}
}

// reading is config with a memory for what pods need when they start.
func (k *checkpoints) reading(config *restclient.Config) *restclient.Config {
	if k == nil {
		return config
	}
	config = restclient.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return k.store.Reads(next, !k.config.ForgetSecrets) })
	return config
}

// statuses are those that the API has not been told.
func (k *checkpoints) statuses() kubelet.Statuses {
	if k == nil {
		return nil
	}
	return k.store.Statuses()
}

// podsLive tells the kubelet which pods the API has, once that is known, and forgets
// what only other pods have needed.
func (k *checkpoints) podsLive(informer cache.SharedIndexInformer) func(context.Context) ([]types.UID, error) {
	if k == nil {
		return nil
	}
	return func(ctx context.Context) ([]types.UID, error) {
		live, err := k.pods.Live(ctx)
		if err != nil {
			return nil, err
		}
		var pods []*corev1.Pod
		wanted := map[string]map[string]bool{bucketOf(volume.KindSecret): {}, bucketOf(volume.KindConfigMap): {}}
		for _, obj := range informer.GetStore().List() {
			pod, ok := obj.(*corev1.Pod)
			if !ok {
				continue
			}
			pods = append(pods, pod)
			inVolumes, elsewhere := volume.References(pod)
			for _, refs := range [][]volume.Ref{inVolumes, elsewhere} {
				for _, ref := range refs {
					wanted[bucketOf(ref.Kind)][ref.Namespace+"/"+ref.Name] = true
				}
			}
		}
		if k.config.ForgetSecrets {
			wanted[bucketOf(volume.KindSecret)] = nil // also those of an earlier life
			k.store.ForgetTokens()
		}
		k.store.KeepFor(pods, wanted)
		return live, nil
	}
}

// memory keeps ConfigMaps and Secrets that pods refer to.
func (k *checkpoints) memory() source.Memory {
	if k == nil {
		return nil
	}
	return objectMemory{k.store, k.config.ForgetSecrets}
}

type objectMemory struct {
	store         *checkpoint.Store
	forgetSecrets bool
}

func bucketOf(kind string) string {
	if kind == volume.KindSecret {
		return "secrets"
	}
	return "configmaps"
}

func (objectMemory) list(ref volume.Ref) checkpoint.List {
	l := checkpoint.List{Bucket: bucketOf(ref.Kind), Only: ref.Namespace + "/" + ref.Name, New: func() checkpoint.Object { return &corev1.ConfigMap{} }}
	if ref.Kind == volume.KindSecret {
		l.New = func() checkpoint.Object { return &corev1.Secret{} }
	}
	return l
}

// Remember implements source.Memory.
func (m objectMemory) Remember(ref volume.Ref, lw cache.ListerWatcher) cache.ListerWatcher {
	if m.forgetSecrets && ref.Kind == volume.KindSecret {
		return lw
	}
	return m.store.Remember(m.list(ref), lw)
}

// Forget implements source.Memory.
func (m objectMemory) Forget(ref volume.Ref) { m.store.Forget(m.list(ref)) }
