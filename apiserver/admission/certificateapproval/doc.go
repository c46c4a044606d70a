// Package certificateapproval is the admission plug-in CertificateApproval: who approves
// or denies a certificate signing request needs the verb approve on its signer.
package certificateapproval
