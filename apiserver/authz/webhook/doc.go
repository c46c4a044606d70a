// Package webhook is the authorization mode Webhook: another program is asked with
// SubjectAccessReview objects, and its answers are remembered for a while. Conditions in
// CEL can spare it questions.
package webhook
