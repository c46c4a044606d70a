package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/linux/inotify"
)

// watchFiles calls changed with the path of each file in whose directory something has
// happened, one at a time, until ctx ends: a file may be a link into a directory that is
// replaced as a whole, as mounted ConfigMaps are. Whether a file is another now is for
// the caller to find out.
func watchFiles(ctx context.Context, files []string, changed func(path string)) error {
	byDir := map[string][]string{}
	for _, f := range files {
		abs, err := filepath.Abs(f)
		if err != nil {
			return err
		}
		byDir[filepath.Dir(abs)] = append(byDir[filepath.Dir(abs)], f)
	}
	if len(byDir) == 0 {
		<-ctx.Done()
		return nil
	}
	happened := make(chan []string)
	group, ctx := errgroup.WithContext(ctx)
	for dir, list := range byDir {
		w, err := inotify.Watch(dir, inotify.Create, inotify.Remove, inotify.Closed)
		if err != nil {
			return fmt.Errorf("watch files: %w", err)
		}
		group.Go(func() error {
			defer w.Close() //nolint:errcheck // only read
			for {
				if _, err := w.Next(ctx); err != nil {
					if ctx.Err() != nil || errors.Is(err, context.Canceled) {
						return nil
					}
					return fmt.Errorf("watch files in %s: %w", dir, err)
				}
				select {
				case happened <- list:
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	group.Go(func() error {
		for {
			select {
			case list := <-happened:
				for _, path := range list {
					changed(path)
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}
