// Package imagepolicywebhook is the admission plug-in ImagePolicyWebhook: a program
// outside of the server is shown the images of every pod and may refuse them
// (imagepolicy.k8s.io/v1alpha1). Answers hold for a while. It is off by default, and
// needs a configuration.
package imagepolicywebhook
