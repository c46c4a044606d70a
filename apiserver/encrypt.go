package apiserver

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/encryption"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// encrypts puts encryption in front of the store, if it is configured.
func (s *Server) encrypts() error {
	c := s.config.Encryption
	if c.File == "" {
		return nil
	}
	c.Resource, c.Log, c.Again = s.resourceOf, s.config.Log, s.readAgain
	if c.Server == "" {
		c.Server = s.config.Advertise.String()
	}
	sealed, err := encryption.New(s.config.Store, c)
	if err != nil {
		return err
	}
	s.sealed, s.config.Store = sealed, sealed
	return nil
}

// Encryption is the encryption at rest, nil if nothing is encrypted.
func (s *Server) Encryption() *encryption.Store { return s.sealed }

// resourceOf tells whose objects are stored under a key: built-in ones by the place that
// they have, custom ones by their group and plural name, which the key begins with.
func (s *Server) resourceOf(key string) schema.GroupResource {
	path := strings.TrimPrefix(key, cacher.Root)
	first, rest, _ := strings.Cut(path, "/")
	second, _, _ := strings.Cut(rest, "/")
	if gr, ok := s.places[first+"/"+second]; ok {
		return gr
	}
	if gr, ok := s.places[first]; ok {
		return gr
	}
	return schema.GroupResource{Group: first, Resource: second}
}

// sealedRules are what reading and writing need to know of encryption.
func (s *Server) sealedRules() rest.Sealed {
	if s.sealed == nil {
		return rest.Sealed{}
	}
	return rest.Sealed{Stale: s.sealed.Stale, Unreadable: s.sealed.Unreadable}
}

// readAgain fills the caches anew that lack entries which could not be decrypted.
func (s *Server) readAgain(keys []string) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.RequestTimeout)
	defer cancel()
	done := map[schema.GroupResource]bool{}
	for _, key := range keys {
		gr := s.resourceOf(key)
		if done[gr] {
			continue
		}
		done[gr] = true
		if err := s.caches.Refresh(ctx, key); err != nil {
			s.config.Log.Warn("objects that can be decrypted now could not be read", "resource", gr.String(), base.KeyError, err)
		}
	}
}
