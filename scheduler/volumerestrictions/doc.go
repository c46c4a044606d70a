// Package volumerestrictions is the plug-in VolumeRestrictions: a claim with the
// access mode ReadWriteOncePod is used by one pod in the whole cluster.
package volumerestrictions
