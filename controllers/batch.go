package controllers

import (
	"errors"
	"sync"
)

// SlowStart calls do for 0 … n-1, in parallel batches that double as long as none
// fails: 1, 2, 4 … When the first calls are refused (a quota, an admission
// plug-in), the rest is not tried. It returns how many succeeded, and the errors
// of the batch that stopped it.
func SlowStart(n int, do func(i int) error) (int, error) {
	succeeded := 0
	for next, size := 0, min(1, n); size > 0; {
		errs := make([]error, size)
		var group sync.WaitGroup
		for i := range size {
			group.Go(func() { errs[i] = do(next + i) })
		}
		group.Wait()
		for _, err := range errs {
			if err == nil {
				succeeded++
			}
		}
		if err := errors.Join(errs...); err != nil {
			return succeeded, err
		}
		next += size
		size = min(2*size, n-next)
	}
	return succeeded, nil
}

// Parallel calls do for 0 … n-1 with at most width at a time and returns all errors.
func Parallel(n, width int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	slots := make(chan struct{}, max(1, width))
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
