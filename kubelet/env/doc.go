// Package env makes the environment of a container: envFrom, env with all its
// sources, service variables, and $(VAR) references.
//
//	spec, ConfigMaps, Secrets, Services, pod fields ── Make ──► []Var, in order
package env
