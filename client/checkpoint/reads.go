package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/base"
)

const (
	readsBucket  = "reads"
	tokensBucket = "tokens"
	// maxAnswer bounds what is kept of one answer.
	maxAnswer = 1 << 20
)

// readable are the kinds that a node reads one by one, when a pod needs them.
var readable = []string{"/persistentvolumeclaims/", "/persistentvolumes/", "/csidrivers/", "/volumeattachments/", "/runtimeclasses/"}

// Reads returns a transport that keeps the answers to requests for single objects that
// pods need (claims, volumes, drivers, runtime classes) and, with tokens, for their
// tokens, and gives them again while next cannot be reached. A token is kept until its
// pod is forgotten; one that has expired meanwhile is what a running container would
// have too.
func (s *Store) Reads(next http.RoundTripper, tokens bool) http.RoundTripper {
	return &reads{s, next, tokens}
}

type reads struct {
	store  *Store
	next   http.RoundTripper
	tokens bool
}

// RoundTrip implements http.RoundTripper.
func (t *reads) RoundTrip(r *http.Request) (*http.Response, error) {
	bucket, key, r, err := keptBy(r)
	if err != nil {
		return nil, err
	}
	if bucket == "" || bucket == tokensBucket && !t.tokens {
		return t.next.RoundTrip(r)
	}
	resp, err := t.next.RoundTrip(r)
	switch {
	case err == nil && resp.StatusCode < 300:
		return t.keep(bucket, key, resp)
	case err == nil && answers(resp.StatusCode):
		if resp.StatusCode == http.StatusNotFound {
			t.store.put(bucket, key, nil)
		}
		return resp, nil
	}
	kept := t.store.get(bucket, key)
	contentType, data, ok := bytes.Cut(kept, []byte("\n"))
	if !ok || r.Context().Err() != nil {
		return resp, err
	}
	if err == nil {
		_ = resp.Body.Close()
	}
	t.store.log.Info("The server cannot be reached: going on with what was known", base.KeyName, r.URL.Path, base.KeyError, err)
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {string(contentType)}}, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)), Request: r,
	}, nil
}

// keep reads an answer and keeps it.
func (t *reads) keep(bucket, key string, resp *http.Response) (*http.Response, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	if len(data) > maxAnswer {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(data), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(data))
	if resp.Header.Get("Content-Encoding") == "" {
		t.store.put(bucket, key, bytes.Join([][]byte{[]byte(resp.Header.Get("Content-Type")), data}, []byte("\n")))
	}
	return resp, nil
}

// keptBy says whether the answer to a request is kept, and under which key.
func keptBy(r *http.Request) (bucket, key string, same *http.Request, err error) {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodGet && r.URL.RawQuery == "":
		for _, k := range readable {
			if i := strings.Index(path, k); i >= 0 && !strings.Contains(path[i+len(k):], "/") {
				return readsBucket, path, r, nil
			}
		}
	case r.Method == http.MethodPost && strings.HasSuffix(path, "/token") && strings.Contains(path, "/serviceaccounts/") && r.Body != nil:
		data, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer))
		_ = r.Body.Close()
		if err != nil {
			return "", "", nil, err
		}
		same := r.Clone(r.Context())
		same.Body = io.NopCloser(bytes.NewReader(data))
		same.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		request, ok := obj.(*authenticationv1.TokenRequest)
		if err != nil || !ok || request.Spec.BoundObjectRef == nil {
			return "", "", same, nil //nolint:nilerr // the server will say what it thinks of it
		}
		// Path and body name pod, account, audience and life.
		sum := sha256.Sum256(append([]byte(path+"\n"), data...))
		return tokensBucket, string(request.Spec.BoundObjectRef.UID) + "/" + hex.EncodeToString(sum[:]), same, nil
	}
	return "", "", r, nil
}

// KeepFor drops what only pods that are gone have needed: their tokens, statuses, claims
// and volumes, and in each bucket of wanted the single objects whose keys are not there.
// It is called when all pods of the node are known from the API.
func (s *Store) KeepFor(pods []*corev1.Pod, wanted map[string]map[string]bool) {
	uids, claims := map[string]bool{}, map[string]bool{}
	for _, p := range pods {
		uids[string(p.UID)] = true
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			switch {
			case v.PersistentVolumeClaim != nil:
				claims[claimPath(p.Namespace, v.PersistentVolumeClaim.ClaimName)] = true
			case v.Ephemeral != nil:
				claims[claimPath(p.Namespace, p.Name+"-"+v.Name)] = true
			}
		}
	}
	s.keep(statusBucket, func(key string) bool { return uids[key] })
	s.keep(tokensBucket, func(key string) bool {
		uid, _, _ := strings.Cut(key, "/")
		return uids[uid]
	})
	volumes := map[string]bool{}
	for path := range claims {
		if _, data, ok := bytes.Cut(s.get(readsBucket, path), []byte("\n")); ok {
			if obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil); err == nil {
				if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok {
					volumes["/api/v1/persistentvolumes/"+claim.Spec.VolumeName] = true
				}
			}
		}
	}
	s.keep(readsBucket, func(path string) bool {
		switch {
		case strings.Contains(path, "/persistentvolumeclaims/"):
			return claims[path]
		case strings.Contains(path, "/persistentvolumes/"):
			return volumes[path]
		}
		return true
	})
	for bucket, keys := range wanted {
		s.keep(bucket, func(key string) bool { return keys[key] })
		s.keep(knownBucket, func(id string) bool {
			of, key, single := strings.Cut(id, " ")
			return of != bucket || !single || keys[key]
		})
	}
}

// ForgetTokens drops all tokens.
func (s *Store) ForgetTokens() { s.keep(tokensBucket, func(string) bool { return false }) }

func claimPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/" + name
}
