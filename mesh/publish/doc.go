// Package publish makes the objects by which the mesh is found: the Service of the
// control plane with this server's address, the authority's certificate in each
// namespace that has sidecars, and the webhooks' configurations. Each is made when
// it is first needed and put right when it is not what it must be.
package publish
