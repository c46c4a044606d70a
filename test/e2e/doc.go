// Package e2e tests the real binary on a real kernel, in machines of test/netlab,
// with scripts (testscript, testdata/*.txtar) named after the rows of the
// journey that they show: j4.6-unschedulable.txtar.
//
// A script types what a person would: peri, kubectl (the one built in), curl. Most
// scripts share one cluster, each in a namespace of its own, $NS, which is
// KUBECONFIG's default. One that has a line "machine" gets a machine for itself,
// on which nothing runs yet. They wait by watching (kubectl wait, kubectl rollout
// status, watch), never by sleeping.
//
//	machine [flags]           a machine of its own; flags are added to every peri up
//	up [flags]                peri up; returns when the node is ready (! up: must fail)
//	daemon NAME [flags]       one part alone; returns when it reports its stage
//	end NAME, crash NAME      ends "up" or a daemon: SIGTERM, kill -9
//	poweroff [NAME]           everything on the machine dies at once; a script may name one of its lab
//	down                      peri down --purge; fails if anything is left behind
//	kubectl, peri, helm, curl …  inside the machine (! for failure); stdout and stderr are kept
//	setenv NAME cmd …         puts what it prints into a variable
//	build NAME FOLDER         compiles a program of this module into the script's directory
//	watch REGEXP cmd …        runs cmd until a line of its output matches
//	answer REGEXP URL         curl until the URL answers with that
//
//	$PERI, $REGISTRY, $BUSYBOX, $NGINX, $ADMISSION, $MODULE, $NODE, $NODE_IP, $STATE, $RUN
//
// Only some scripts:  go test ./test/e2e -run 'Scripts/j5'
package e2e
