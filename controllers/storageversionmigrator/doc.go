// Package storageversionmigrator writes all objects of a resource once more, as they are
// stored now: in the present storage version of a custom resource, or under the present
// key of encryption (KEP-4192). A StorageVersionMigration asks for it:
//
//	Running ── resourceVersion noted ── each object that is not newer is patched with
//	nothing ── Succeeded, or Failed ── Running False
//
// Of several for one resource the oldest goes first. The definition of a custom resource
// has the condition StorageMigrating meanwhile, and loses the versions that nothing is
// stored in any more from status.storedVersions, if it did not change in between.
package storageversionmigrator
