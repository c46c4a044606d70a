// Package webhook asks another program about tokens: TokenReview objects are posted to
// the server of a kubeconfig file. Answers are remembered for a while.
package webhook
