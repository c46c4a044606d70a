package ownership

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxUpdaters bounds the entries of an object that come from updates; the oldest are
// merged into one of the manager ancient, per version.
const (
	maxUpdaters = 10
	ancient     = "ancient-changes"
)

// limit merges the oldest entries if there are too many.
func limit(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error) {
	var updaters []int
	for i := range entries {
		if entries[i].Operation == update {
			updaters = append(updaters, i)
		}
	}
	if len(updaters) <= maxUpdaters {
		return entries, nil
	}
	slices.SortFunc(updaters, func(i, j int) int {
		if a, b := seconds(entries[i].Time), seconds(entries[j].Time); a != b {
			return int(a - b)
		}
		return strings.Compare(identifier(&entries[i]), identifier(&entries[j]))
	})
	firstOf, gone := map[string]int{}, map[int]bool{}
	left := len(updaters)
	for _, i := range updaters {
		if left <= maxUpdaters {
			break
		}
		version := entries[i].APIVersion
		first, ok := firstOf[version]
		if !ok {
			firstOf[version] = i
			continue
		}
		// The bucket of the version is there from before, or the first becomes it.
		bucket, merged := slices.IndexFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return isBucket(&e, version) }), i
		switch bucket {
		case -1:
			bucket = first
			entries[first].Manager, entries[first].Subresource = ancient, ""
		case i:
			merged, firstOf[version] = first, i
		}
		if err := replace(&entries[bucket], func(out, raw []byte) ([]byte, error) {
			return combine(out, union, raw, entries[merged].FieldsV1.GetRawBytes())
		}); err != nil {
			return nil, err
		}
		entries[bucket].Time = entries[i].Time
		gone[merged] = true
		left--
	}
	out := entries[:0]
	for i := range entries {
		if !gone[i] {
			out = append(out, entries[i])
		}
	}
	return out, nil
}

func isBucket(e *metav1.ManagedFieldsEntry, version string) bool {
	return e.Manager == ancient && e.Operation == update && e.APIVersion == version && e.Subresource == ""
}

// identifier is what upstream tells entries apart by, for the order of those of the same second.
func identifier(e *metav1.ManagedFieldsEntry) string {
	data, err := json.Marshal(&metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, APIVersion: e.APIVersion, Subresource: e.Subresource})
	if err != nil {
		return e.Manager
	}
	return string(data)
}
