package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/garbage"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/journey"
)

// requestHeaderTimeout bounds how long a client of a local socket may take for a header.
const requestHeaderTimeout = 10 * time.Second

// Up runs a whole cluster on this machine until ctx ends: server and node in
// one process. Containers go on when it ends; see Down.
func Up(ctx context.Context, c *Config, log *slog.Logger, progress Progress) error {
	garbage.Tune()
	if os.Geteuid() != 0 {
		return fmt.Errorf("peri up needs root, to make containers and networks: run it with sudo")
	}
	if err := preflight(c); err != nil {
		return err
	}
	joined, err := joinFirst(ctx, c)
	if err != nil {
		return err
	}
	release, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer release()
	if joined != nil {
		if err := c.saveQuorum(joined); err != nil {
			return err
		}
	}
	if err := c.adoptSaved(); err != nil {
		return err
	}
	if err := writePid(c); err != nil {
		return err
	}
	defer os.Remove(c.PidFile())
	ip, err := nodeIP(c)
	if err != nil {
		return err
	}
	id, err := openIdentities(c, ip)
	if err != nil {
		return err
	}
	if err := writeKubeconfigs(c, id); err != nil {
		return err
	}
	spans := journey.NewLog()
	s := &controlPlane{config: c, log: log, nodeIP: ip, id: id, spans: spans, record: spans, metrics: newProcessMetrics()}
	if s.quorum, err = s.member(); err != nil {
		return err
	}
	w := &worker{config: c, log: log, nodeIP: ip, serving: id.kubelet.Server, clientCAs: id.ca.Pool, record: spans, together: true}
	// These are used after the API server's stage is ready.
	w.connect = func(component string) (*restclient.Config, error) { return s.connect(component) }
	w.define = func(ctx context.Context, list []*apiextensionsv1.CustomResourceDefinition) error {
		return s.api.Define(ctx, list)
	}
	w.shared = func() informers.SharedInformerFactory { return s.shared }
	w.pods = func(kubernetes.Interface) cache.SharedIndexInformer {
		return client.Informer(s.api.Source(), corev1.SchemeGroupVersion.WithResource("pods"), &corev1.Pod{}, func(obj runtime.Object) bool {
			return obj.(*corev1.Pod).Spec.NodeName == c.NodeName
		})
	}
	w.nodes = func(kubernetes.Interface) cache.SharedIndexInformer {
		return client.Informer(s.api.Source(), corev1.SchemeGroupVersion.WithResource("nodes"), &corev1.Node{}, func(obj runtime.Object) bool {
			return obj.(*corev1.Node).Name == c.NodeName
		})
	}
	w.objectInformers = func(shared informers.SharedInformerFactory) informers.SharedInformerFactory { return shared }
	s.whole = true
	stages := []stage{s.etcdStage(), s.apiStage(), s.controllersStage(), s.schedulerStage(), s.addonsStage(), s.meshStage(), s.manifestsStage(), renewalStage(id)}
	if c.DisableAgent {
		stages = append(stages, serverReadyStage(log), w.gatewayStage(ReadyServer), settleStage(log, ReadyServer))
	} else {
		stages = append(stages, w.stages("apiserver")...)
	}
	return runStages(ctx, stages, progress)
}

// serverReadyStage is ready when a server without a node is, and tells systemd.
func serverReadyStage(log *slog.Logger) stage {
	return stage{name: ReadyServer, after: []string{"apiserver", "controllers", "scheduler", "addons"}, run: func(ctx context.Context, ready func()) error {
		ready()
		tellSystemd(log)
		<-ctx.Done()
		return nil
	}}
}

// The stages that make a process ready for its user: its node, or, without one, the server.
const (
	ReadyNode   = "node"
	ReadyServer = "server"
)

func tellSystemd(log *slog.Logger) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.Warn("systemd could not be told that peri is ready", base.KeyError, err)
	}
}

// readyStage is ready when the node is, and tells systemd.
func (w *worker) readyStage() stage {
	return stage{name: ReadyNode, after: []string{"kubelet", "proxy", "dns"}, run: func(ctx context.Context, ready func()) error {
		informer := w.shared().Core().V1().Nodes().Informer()
		became := make(chan struct{}, 1)
		check := func(obj any) {
			if n, ok := obj.(*corev1.Node); ok && n.Name == w.config.NodeName && conditions.NodeReady(n) {
				select {
				case became <- struct{}{}:
				default:
				}
			}
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: check, UpdateFunc: func(_, obj any) { check(obj) }})
		if err != nil {
			return err
		}
		w.shared().StartWithContext(ctx)
		select {
		case <-became:
		case <-ctx.Done():
			return nil
		}
		if err := informer.RemoveEventHandler(registration); err != nil {
			return err
		}
		ready()
		tellSystemd(w.log)
		<-ctx.Done()
		return nil
	}}
}

// renewalStage keeps the certificates fresh.
func renewalStage(id *identities) stage {
	return stage{name: "certificates", run: func(ctx context.Context, ready func()) error {
		ready()
		return base.RunAll(ctx, id.renewals()...)
	}}
}

func writePid(c *Config) error {
	if err := os.MkdirAll(c.RunDir, 0o700); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	return pki.WriteFile(c.PidFile(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644)
}
