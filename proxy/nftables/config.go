package nftables

import "github.com/periplus/periplus/proxy"

// Config is what any backend is told, and the name of the table.
type Config struct {
	proxy.BackendConfig
	// Table is the name of the table; default "periplus-proxy".
	Table string
}

func (c *Config) complete() error {
	if c.Table == "" {
		c.Table = "periplus-proxy"
	}
	return c.BackendConfig.Complete()
}
