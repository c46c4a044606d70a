// Package certificatesigning is the admission plug-in CertificateSigning: who issues a
// certificate, or says that it failed, needs the verb sign on the request's signer.
package certificatesigning
