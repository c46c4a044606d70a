package csi

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Drivers are the drivers of one node by name. Built-in ones are opened when
// they are first asked for: until then they cost nothing.
type Drivers struct {
	mu      sync.Mutex // guards what follows
	open    map[string]*Driver
	builtin map[string]func() (*Driver, error)
	told    []func(name string)
}

// OnRegister has f called after a driver has come. f must not block.
func (d *Drivers) OnRegister(f func(name string)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, f)
}

// NewDrivers returns an empty set.
func NewDrivers() *Drivers {
	return &Drivers{open: map[string]*Driver{}, builtin: map[string]func() (*Driver, error){}}
}

// Builtin makes a driver known that open makes on its first use.
func (d *Drivers) Builtin(name string, open func() (*Driver, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.builtin[name] = open
}

// Get returns the driver of a name. Its absence is upstream's error, which ends up
// in events.
func (d *Drivers) Get(name string) (*Driver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.open[name]; have != nil {
		return have, nil
	}
	open := d.builtin[name]
	if open == nil {
		return nil, fmt.Errorf("driver name %s not found in the list of registered CSI drivers", name)
	}
	made, err := open()
	if err != nil {
		return nil, err
	}
	d.open[name] = made
	return made, nil
}

// Has reports whether Get would find the driver, without opening it.
func (d *Drivers) Has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[name] != nil || d.builtin[name] != nil
}

// IsBuiltin reports whether the driver is one of Periplus' own.
func (d *Drivers) IsBuiltin(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.builtin[name] != nil
}

// Names lists the drivers in order.
func (d *Drivers) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := maps.Clone(d.builtin)
	for name := range d.open {
		all[name] = nil
	}
	return slices.Sorted(maps.Keys(all))
}

// Register adds a driver under its name, in place of an earlier one.
func (d *Drivers) Register(name string, driver *Driver) {
	d.mu.Lock()
	old := d.open[name]
	d.open[name] = driver
	told := slices.Clone(d.told)
	d.mu.Unlock()
	for _, f := range told {
		f(name)
	}
	if old != nil && old != driver {
		_ = old.Close()
	}
}

// Deregister drops the driver, if it is still this one.
func (d *Drivers) Deregister(name string, driver *Driver) {
	d.mu.Lock()
	if d.open[name] == driver {
		delete(d.open, name)
	}
	d.mu.Unlock()
	_ = driver.Close()
}

// Close ends all connections.
func (d *Drivers) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, driver := range d.open {
		_ = driver.Close()
		delete(d.open, name)
	}
}
