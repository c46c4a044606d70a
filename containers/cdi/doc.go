// Package cdi gives containers devices by name, as their vendors describe them in files
// (Container Device Interface 1.1):
//
//	"nvidia.com/gpu=0" ── Find ── /etc/cdi/*.json, /var/run/cdi/*.yaml ──► Edits ── Apply ──► config.json
//
// Files are read when a container asks for a device, and only then.
package cdi
