// Package validating is the admission plug-in ValidatingAdmissionWebhook: programs
// outside of the server are asked side by side whether they have anything against
// a write; the first refusal is the answer.
package validating
