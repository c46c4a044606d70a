package app

// accounts are the service accounts (in kube-system) of controllers whose
// account has another name than they have, as upstream.
var accounts = map[string]string{
	"daemonset-controller":                                           "daemon-set-controller",
	"endpoints-controller":                                           "endpoint-controller",
	"garbage-collector-controller":                                   "generic-garbage-collector",
	"node-ipam-controller":                                           "node-controller",
	"node-lifecycle-controller":                                      "node-controller",
	"taint-eviction-controller":                                      "node-controller",
	"pod-garbage-collector-controller":                               "pod-garbage-collector",
	"replicationcontroller-controller":                               "replication-controller",
	"root-ca-certificate-publisher-controller":                       "root-ca-cert-publisher",
	"serviceaccount-controller":                                      "service-account-controller",
	"horizontal-pod-autoscaler-controller":                           "horizontal-pod-autoscaler",
	"persistentvolume-binder-controller":                             "persistent-volume-binder",
	"persistentvolume-attach-detach-controller":                      "attachdetach-controller",
	"persistentvolume-expander-controller":                           "expand-controller",
	"persistentvolumeclaim-protection-controller":                    "pvc-protection-controller",
	"persistentvolume-protection-controller":                         "pv-protection-controller",
	"ephemeral-volume-controller":                                    "ephemeral-volume-controller",
	"certificatesigningrequest-signing-controller":                   "certificate-controller",
	"certificatesigningrequest-approving-controller":                 "certificate-controller",
	"certificatesigningrequest-cleaner-controller":                   "certificate-controller",
	"service-cidr-controller":                                        "service-cidrs-controller",
	"service-lb-controller":                                          "service-controller",
	"token-cleaner-controller":                                       "token-cleaner",
	"bootstrap-signer-controller":                                    "bootstrap-signer",
	"podcertificaterequest-cleaner-controller":                       "podcertificaterequestcleaner",
	"legacy-serviceaccount-token-cleaner-controller":                 "legacy-service-account-token-cleaner",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller": "kube-apiserver-serving-clustertrustbundle-publisher",
}

// accountOf returns the service account of a controller.
func accountOf(controller string) string {
	if a, ok := accounts[controller]; ok {
		return a
	}
	return controller
}
