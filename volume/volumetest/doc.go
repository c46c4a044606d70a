// Package volumetest holds the suite that every kind of volume must pass, and a
// volume.Sources made of maps.
package volumetest
