package cri

import "context"

type briefKey struct{}

// Brief marks requests for stats that need processors and memory alone. The embedded
// runtime then does not add up what is on disks; another one answers as always.
func Brief(ctx context.Context) context.Context {
	return context.WithValue(ctx, briefKey{}, true)
}

// IsBrief reports whether ctx comes from Brief.
func IsBrief(ctx context.Context) bool {
	brief, _ := ctx.Value(briefKey{}).(bool)
	return brief
}
