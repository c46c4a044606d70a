package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	Object    struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Containers []struct {
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
	} `json:"object"`
}

type response struct {
	UID       string   `json:"uid"`
	Allowed   bool     `json:"allowed"`
	Patch     []byte   `json:"patch,omitempty"`
	PatchType string   `json:"patchType,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	Status    *status  `json:"status,omitempty"`
}

type status struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
}

// label adds the label, to an object with or without others.
func label(r *request) *response {
	patch := `[{"op":"add","path":"/metadata/labels/touched","value":"yes"}]`
	if len(r.Object.Metadata.Labels) == 0 {
		patch = `[{"op":"add","path":"/metadata/labels","value":{"touched":"yes"}}]`
	}
	return &response{Allowed: true, Patch: []byte(patch), PatchType: "JSONPatch"}
}

func fromRegistry(r *request) *response {
	for _, c := range r.Object.Spec.Containers {
		if !strings.HasPrefix(c.Image, "127.0.0.1:5000/") {
			return &response{Status: &status{Message: fmt.Sprintf("image %q is not from the registry", c.Image), Code: http.StatusForbidden}}
		}
	}
	return &response{Allowed: true}
}

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1)
	}
}

func serve(names []string) error {
	certificate, bundle, err := selfSigned(names)
	if err != nil {
		return err
	}
	fmt.Println(base64.StdEncoding.EncodeToString(bundle))
	answer := map[string]func(*request) *response{
		"/label": label, "/registry": fromRegistry,
		"/deny": func(*request) *response {
			return &response{Status: &status{Message: "denied by test", Code: http.StatusForbidden}}
		},
		"/allow": func(*request) *response { return &response{Allowed: true, Warnings: []string{"seen by the webhook"}} },
	}
	server := &http.Server{
		Addr: ":8443", ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				return
			}
			var in review
			f := answer[r.URL.Path]
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil || f == nil {
				http.Error(w, "no review for "+r.URL.Path, http.StatusNotFound)
				return
			}
			out := f(in.Request)
			out.UID = in.Request.UID
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(review{APIVersion: in.APIVersion, Kind: in.Kind, Response: out}) // a caller that has gone needs no answer
		}),
	}
	return server.ListenAndServeTLS("", "")
}

// selfSigned makes a certificate for names and addresses that verifies itself.
func selfSigned(names []string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
