// Package nodename is the plug-in NodeName: a pod that names its node fits only there.
package nodename
