package oidc

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

// Flags are the older way to name one issuer.
type Flags struct {
	IssuerURL, ClientID, CAFile   string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	RequiredClaims                map[string]string
	SigningAlgorithms             []string
}

// Configuration is what the flags say, in the structured form; nil without an issuer.
func (f *Flags) Configuration() (*apiserver.AuthenticationConfiguration, error) {
	if f.IssuerURL == "" {
		if f.ClientID != "" {
			return nil, errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
		}
		return nil, nil
	}
	if f.ClientID == "" {
		return nil, errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	prefix := f.UsernamePrefix
	switch {
	case prefix == "-":
		prefix = ""
	case prefix == "" && f.UsernameClaim != "email":
		prefix = f.IssuerURL + "#"
	}
	j := apiserver.JWTAuthenticator{
		Issuer:        apiserver.Issuer{URL: f.IssuerURL, Audiences: []string{f.ClientID}},
		ClaimMappings: apiserver.ClaimMappings{Username: apiserver.PrefixedClaimOrExpression{Claim: f.UsernameClaim, Prefix: &prefix}},
	}
	if f.GroupsClaim != "" {
		group := f.GroupsPrefix
		j.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Claim: f.GroupsClaim, Prefix: &group}
	}
	for claim, value := range f.RequiredClaims {
		j.ClaimValidationRules = append(j.ClaimValidationRules, apiserver.ClaimValidationRule{Claim: claim, RequiredValue: value})
	}
	if f.CAFile != "" {
		ca, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("oidc-ca-file: %w", err)
		}
		j.Issuer.CertificateAuthority = string(ca)
	}
	return &apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{j}}, nil
}

// Parse reads a structured configuration, strictly: v1, v1beta1 or v1alpha1.
func Parse(text []byte) (*apiserver.AuthenticationConfiguration, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	obj, err := runtime.Decode(codecs.UniversalDecoder(), text)
	if err != nil {
		return nil, err
	}
	c, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("expected AuthenticationConfiguration, got %T", obj)
	}
	return c, nil
}

// validate checks a configuration as a whole. reserved are issuers that it may not name.
func validate(compiler authenticationcel.Compiler, c *apiserver.AuthenticationConfiguration, reserved []string) error {
	return validation.ValidateAuthenticationConfiguration(compiler, c, reserved).ToAggregate()
}
