package images

import (
	"context"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// NginxPage is what the nginx image answers on /.
const NginxPage = "Welcome to nginx!"

const nginxConfig = `# One worker and plain files: the image of tests and of the demonstration.
user www-data;
worker_processes 1;
pid /run/nginx.pid;
error_log /dev/stderr notice;
events { worker_connections 512; }
http {
	include /etc/nginx/mime.types;
	default_type application/octet-stream;
	access_log /dev/stdout;
	sendfile on;
	server {
		listen 80 default_server;
		root /usr/share/nginx/html;
		index index.html;
		location = /hostname { default_type text/plain; return 200 "$hostname\n"; }
	}
}
`

// Nginx is Debian's nginx in the foreground on port 80. It answers / with its
// default page and /hostname with the pod's name.
func Nginx(ctx context.Context) (v1.Image, error) {
	return Debian{
		Packages: []string{"nginx"},
		Files: []File{
			{Path: "etc/nginx/nginx.conf", Mode: 0o644, Data: []byte(nginxConfig)},
			{Path: "var/log/nginx", Mode: os.ModeDir | 0o755},
			{Path: "var/lib/nginx", Mode: os.ModeDir | 0o755},
		},
		Config: v1.Config{
			Cmd:          []string{"nginx", "-g", "daemon off;"},
			Env:          []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
			ExposedPorts: map[string]struct{}{"80/tcp": {}},
			StopSignal:   "SIGQUIT",
		},
	}.Image(ctx)
}

// Redis is Debian's redis-server in the foreground on port 6379, without
// password and without persistence.
func Redis(ctx context.Context) (v1.Image, error) {
	return Debian{
		Packages: []string{"redis-server"},
		Files:    []File{{Path: "data", Mode: os.ModeDir | 0o777}},
		Config: v1.Config{
			Cmd:          []string{"redis-server", "--bind", "*", "--protected-mode", "no", "--save", ""},
			Env:          []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
			WorkingDir:   "/data",
			ExposedPorts: map[string]struct{}{"6379/tcp": {}},
		},
	}.Image(ctx)
}
