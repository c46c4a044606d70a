package image_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/periplus/periplus/containers/image"
)

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseReference(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nginx":                          "docker.io/library/nginx:latest",
		"nginx:1.29":                     "docker.io/library/nginx:1.29",
		"library/nginx":                  "docker.io/library/nginx:latest",
		"team/app:v1":                    "docker.io/team/app:v1",
		"docker.io/nginx":                "docker.io/library/nginx:latest",
		"index.docker.io/team/app":       "docker.io/team/app:latest",
		"quay.io/a/b/c:x_Y.z-1":          "quay.io/a/b/c:x_Y.z-1",
		"localhost/app":                  "localhost/app:latest",
		"localhost:5000/app":             "localhost:5000/app:latest",
		"app:5000":                       "docker.io/library/app:5000",
		"[::1]:5000/app:t":               "[::1]:5000/app:t",
		"[fd00::1]/app":                  "[fd00::1]/app:latest",
		"10.0.0.1:5000/a__b/c.d-e---f":   "10.0.0.1:5000/a__b/c.d-e---f:latest",
		"Registry/app":                   "Registry/app:latest",
		"nginx@sha256:" + hex64:          "docker.io/library/nginx@sha256:" + hex64,
		"r.io/app:v1@sha256:" + hex64:    "r.io/app@sha256:" + hex64,
		"periplus.io/peri:0.1.0-3-gabcd": "periplus.io/peri:0.1.0-3-gabcd",
		"beef":                           "docker.io/library/beef:latest",
	} {
		got, err := image.ParseReference(in)
		if err != nil || got.String() != want {
			t.Errorf("%q: %v %v, want %s", in, got, err, want)
		}
	}
}

func TestParseReferenceErrors(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                    "empty",
		"Nginx":                               "repository name (library/Nginx) must be lowercase",
		"quay.io/Team/App":                    "repository name (Team/App) must be lowercase",
		"nginx:":                              `tag "" is empty`,
		"nginx:-x":                            `tag "-x" must begin`,
		"nginx:a b":                           `not " "`,
		"nginx:" + strings.Repeat("x", 129):   "longer than 128",
		"nginx@sha256:abc":                    "64 lower case hexadecimal digits",
		"nginx@md5:" + hex64:                  "not supported",
		"nginx@":                              "no algorithm",
		"/nginx":                              "empty component",
		"a//b":                                "empty component",
		"a/b/":                                "empty component",
		"a_-b":                                `not "_-"`,
		"a..b":                                `not ".."`,
		"-a":                                  "begin and end",
		"host:99999/app":                      "port",
		"host:/app":                           "port",
		"ho_st.io/app":                        `it has "_"`,
		"-host.io/app":                        "begins or ends with -",
		"host..io/app":                        "empty label",
		"[::g]/app":                           "IPv6",
		"host.io/":                            "empty",
		"http://host.io/app":                  "port",
		hex64:                                 "image ID",
		"host.io/" + strings.Repeat("a", 255): "255",
		"ngin\x00x":                           "not",
		"näm":                                 "not",
	} {
		got, err := image.ParseReference(in)
		if err == nil || !errors.Is(err, image.ErrInvalidReference) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want %q", in, got, err, want)
		}
	}
}

// FuzzParseReference: what is accepted means the same when it is read again.
func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"nginx", "a.b:5/c:d@sha256:" + hex64, "[::1]:1/x", "A/b", "a__b--c", "x:y:z", "a@b@c", "/:@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := image.ParseReference(s)
		if err != nil {
			return
		}
		again, err := image.ParseReference(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %+v, read again %+v %v", s, r, again, err)
		}
		if (r.Tag == "") == (r.Digest == "") || strings.ContainsAny(r.Path, "@: ") {
			t.Errorf("%q is %+v", s, r)
		}
	})
}
