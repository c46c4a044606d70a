package printers

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/registry"
)

// tables are those of one API group version, by resource.
type tables map[string]*registry.Table

// Tables returns the tables of all kinds by the version in which they are stored.
func Tables() map[schema.GroupVersionResource]*registry.Table {
	out := map[schema.GroupVersionResource]*registry.Table{}
	add := func(gv schema.GroupVersion, t tables) {
		for resource, table := range t {
			out[gv.WithResource(resource)] = table
		}
	}
	core := coreTables()
	maps.Copy(core, podTables())
	maps.Copy(core, nodeTables())
	maps.Copy(core, volumeTables())
	maps.Copy(core, serviceTables())
	add(schema.GroupVersion{Version: "v1"}, core)
	for group, t := range map[string]tables{
		"admissionregistration.k8s.io": admissionTables(),
		"apiregistration.k8s.io":       aggregationTables(),
		"apps":                         appsTables(),
		"batch":                        batchTables(),
		"certificates.k8s.io":          certificateTables(),
		"coordination.k8s.io":          coordinationTables(),
		"discovery.k8s.io":             discoveryTables(),
		"flowcontrol.apiserver.k8s.io": flowTables(),
		"networking.k8s.io":            networkTables(),
		"node.k8s.io":                  runtimeClassTables(),
		"policy":                       policyTables(),
		"rbac.authorization.k8s.io":    rbacTables(),
		"resource.k8s.io":              deviceTables(),
		"scheduling.k8s.io":            schedulingTables(),
		"storage.k8s.io":               storageTables(),
		"storagemigration.k8s.io":      migrationTables(),
	} {
		add(schema.GroupVersion{Group: group, Version: "v1"}, t)
	}
	add(schema.GroupVersion{Group: "autoscaling", Version: "v2"}, autoscalingTables())
	maps.Copy(out, betaTables())
	return out
}

// columns are a table's column definitions.
type columns []metav1.TableColumnDefinition

// table makes a table of one row an object.
func table[T runtime.Object](c columns, cells func(obj T) []any) *registry.Table {
	return &registry.Table{Columns: c, Rows: func(obj runtime.Object) [][]any { return [][]any{cells(obj.(T))} }}
}

func name() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: doc(metav1.ObjectMeta{}, "name")}
}

func age() metav1.TableColumnDefinition {
	return text("Age", doc(metav1.ObjectMeta{}, "creationTimestamp"))
}

func text(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
}

func number(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description}
}

func yesNo(name, description string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{Name: name, Type: "boolean", Description: description}
}

// wide marks a column that is shown with -o wide only.
func wide(c metav1.TableColumnDefinition) metav1.TableColumnDefinition {
	c.Priority = 1
	return c
}

type documented interface{ SwaggerDoc() map[string]string }

// doc is the documentation of a field of the API.
func doc(of documented, field string) string { return of.SwaggerDoc()[field] }
