// Package volumezone is the plug-in VolumeZone: volumes with zone or region labels
// are used in that zone or region.
package volumezone
