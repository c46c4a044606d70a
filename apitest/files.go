package apitest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// extensions are those of files with objects.
var extensions = []string{".yaml", ".yml", ".json"}

// documents calls use for every object in files: of a directory, those in it (not
// below it), in the order of their names. A path that does not exist is an error if
// it must.
func documents(paths []string, must bool, use func(meta metav1.TypeMeta, data []byte) error) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && !must {
			continue
		}
		if err != nil {
			return err
		}
		files := []string{path}
		if info.IsDir() {
			entries, err := os.ReadDir(path)
			if err != nil {
				return err
			}
			files = nil
			for _, e := range entries {
				if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
					files = append(files, filepath.Join(path, e.Name()))
				}
			}
		}
		for _, file := range files {
			if err := read(file, use); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func read(file string, use func(metav1.TypeMeta, []byte) error) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			return err
		}
		if meta.Kind == "" {
			continue // comments
		}
		if err := use(meta, document); err != nil {
			return err
		}
	}
}
