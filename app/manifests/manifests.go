package manifests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/app/dropin"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
)

// endings are those of manifests; other files are not looked at.
var endings = []string{".yaml", ".yml", ".json"}

// Pauses between tries of what failed.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// Config is what a Keeper needs.
type Config struct {
	Dir string
	// Record is the file that says which objects came from which file.
	Record string
	// Connect returns how to reach the API; it is called when there is a file.
	Connect func() (*restclient.Config, error)
	// Failed is told what could not be applied.
	Failed func(message string)
	Log    *slog.Logger
}

// A reference names an object.
type reference struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how people name it.
func (r reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// A file is one whose objects are in the cluster.
type file struct {
	Objects []reference `json:"objects"`

	sum  string // of the content that was applied last, all of it
	told string // what was told of it last
}

// A Keeper applies the files of a directory.
type Keeper struct {
	config  Config
	dir     dropin.Directory
	files   map[string]*file
	cluster *cluster // nil until there is a file
	pause   time.Duration
}

// New makes a Keeper.
func New(c Config) (*Keeper, error) {
	k := &Keeper{config: c, files: map[string]*file{}}
	k.dir = dropin.Directory{Path: c.Dir, Sync: k.sync}
	data, err := os.ReadFile(c.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &k.files)
	}
	if err != nil {
		return nil, fmt.Errorf("record of applied manifests %s: %w", c.Record, err)
	}
	return k, nil
}

// Run applies and keeps the files until ctx ends.
func (k *Keeper) Run(ctx context.Context) error { return k.dir.Follow(ctx) }

// sync compares the directory with what was applied. It goes round as long as that
// helps: a file may need what another one makes.
func (k *Keeper) sync(ctx context.Context, list []dropin.File) time.Duration {
	list = slices.DeleteFunc(list, func(f dropin.File) bool {
		return !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f.Name, e) })
	})
	if len(list) == 0 && len(k.files) == 0 {
		k.cluster, k.pause = nil, 0
		return 0
	}
	if k.cluster == nil {
		c, err := k.connect()
		if err != nil {
			k.config.Log.Error("cannot apply manifests", base.KeyError, err)
			return k.later()
		}
		k.cluster = c
	}
	failed := 0
	for before := -1; ; before = failed {
		failed = 0
		for _, f := range list {
			if ctx.Err() != nil {
				return 0
			}
			if err := k.apply(ctx, f); err != nil {
				failed++
				k.report(f.Name, err)
			}
		}
		if failed == 0 || failed == before {
			break
		}
	}
	for name := range maps.Clone(k.files) {
		if slices.ContainsFunc(list, func(f dropin.File) bool { return f.Name == name }) {
			continue
		}
		if err := k.remove(ctx, name, k.files[name].Objects); err != nil {
			failed++
			k.report(name, err)
			continue
		}
		delete(k.files, name)
		k.save()
		k.config.Log.Info("manifest removed, and its objects with it", base.KeyPath, name)
	}
	if failed == 0 {
		k.pause = 0
		return 0
	}
	return k.later()
}

func (k *Keeper) connect() (*cluster, error) {
	config, err := k.config.Connect()
	if err != nil {
		return nil, err
	}
	return newCluster(config)
}

// later is the pause before the next try.
func (k *Keeper) later() time.Duration {
	k.pause = min(max(firstPause, 2*k.pause), lastPause)
	return k.pause
}

// apply brings one file into the cluster, if it is not there as it is now.
func (k *Keeper) apply(ctx context.Context, f dropin.File) error {
	data, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the next change is on its way
	}
	if err != nil {
		return err
	}
	hash := sha256.Sum256(data)
	sum := hex.EncodeToString(hash[:])
	was := k.files[f.Name]
	if was == nil {
		was = &file{}
	}
	if was.sum == sum {
		return nil
	}
	docs, bad := read(data)
	errs := []error{bad}
	known := slices.Clone(was.Objects)
	var now []reference
	whole := bad == nil
	for _, d := range docs {
		ref, err := k.cluster.resolve(d.object)
		if err == nil {
			now = append(now, ref)
			if !slices.Contains(known, ref) {
				// Noted before it is made: it must not be forgotten if peri dies now.
				known = append(known, ref)
				was.Objects = known
				k.files[f.Name] = was
				k.save()
			}
			err = k.cluster.apply(ctx, f.Name, d.object, ref)
		} else {
			whole = false
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("document %d, %s %s: %w", d.number, d.object.GetKind(), d.object.GetName(), err))
		}
	}
	if whole {
		// What the file does not have any more goes.
		gone := slices.DeleteFunc(slices.Clone(known), func(r reference) bool { return slices.Contains(now, r) })
		if err := k.remove(ctx, f.Name, gone); err != nil {
			errs = append(errs, err)
		} else {
			known = now
		}
	}
	was.Objects = known
	k.files[f.Name] = was
	k.save()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	was.sum, was.told = sum, ""
	k.config.Log.Info("manifest applied", base.KeyPath, f.Path, base.KeyCount, len(now))
	return nil
}

// remove deletes objects, the last ones first.
func (k *Keeper) remove(ctx context.Context, name string, objects []reference) error {
	var errs []error
	for _, ref := range slices.Backward(objects) {
		if err := k.cluster.remove(ctx, name, ref); err != nil {
			errs = append(errs, fmt.Errorf("delete %s: %w", ref, err))
		}
	}
	return errors.Join(errs...)
}

// report tells what failed, each text once.
func (k *Keeper) report(name string, err error) {
	f := k.files[name]
	if f == nil {
		f = &file{}
		k.files[name] = f
	}
	text := err.Error()
	if f.told == text {
		return
	}
	f.told = text
	k.config.Log.Error("cannot apply a manifest", base.KeyPath, name, base.KeyError, err)
	k.config.Failed(fmt.Sprintf("%s: %s", name, strings.ReplaceAll(text, "\n", "; ")))
}

func (k *Keeper) save() {
	data, err := json.Marshal(k.files)
	if err == nil {
		err = pki.WriteFile(k.config.Record, data, 0o600)
	}
	if err != nil {
		k.config.Log.Error("cannot note which manifests were applied", base.KeyError, err)
	}
}

// EventReason is the reason of the events about files.
const EventReason = "FailedManifest"

// EventType is their type.
const EventType = corev1.EventTypeWarning
