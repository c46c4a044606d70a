// Package printers holds what kubectl get shows: the columns and cells of each
// kind, one file a group of kinds. Cells are computed from the stored object, for
// all columns, wide ones included (they have priority 1 and kubectl hides them).
// Objects are shared and must not be modified; note that Quantity.String does.
//
// To add a kind, add its table to the file of its group. Kinds without a table
// show name and age.
package printers
