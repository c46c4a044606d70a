// Package archives imports the image archives that people drop into a directory, for
// machines without a registry: docker-archive or OCI layout, as tar, also compressed
// with gzip or zstd.
//
//	<dir>/app.tar.zst ──► image.Store        each archive once, as long as its images are there
//	<record>          ◄── what was imported  name, size, time, IDs of the images
//
// An image that someone has removed is imported again at the next start.
package archives
