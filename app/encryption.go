package app

import (
	"github.com/spf13/pflag"

	"github.com/periplus/periplus/apiserver/encryption"
)

// EncryptionConfig is what the API server keeps encrypted.
type EncryptionConfig struct {
	// EncryptionFile is a file with an EncryptionConfiguration.
	EncryptionFile string `json:"encryption-provider-config,omitempty"`
	// EncryptionReload reads it again when it changes.
	EncryptionReload bool `json:"encryption-provider-config-automatic-reload,omitempty"`
}

func (c *EncryptionConfig) flags(f *pflag.FlagSet) {
	f.StringVar(&c.EncryptionFile, "encryption-provider-config", c.EncryptionFile, "file with an EncryptionConfiguration: which resources are kept encrypted, and how")
	f.BoolVar(&c.EncryptionReload, "encryption-provider-config-automatic-reload", c.EncryptionReload, "read encryption-provider-config again when it changes")
}

func (c *EncryptionConfig) options() encryption.Config {
	return encryption.Config{File: c.EncryptionFile, Reload: c.EncryptionReload}
}
