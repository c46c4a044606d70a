// Package denyserviceexternalips is the admission plug-in DenyServiceExternalIPs:
// Services get no external IPs that they did not have, because whoever may choose one
// can take over the traffic to it (CVE-2020-8554). It is off by default.
package denyserviceexternalips
