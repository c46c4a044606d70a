//go:build ignore

// Command generate packs the definitions of the Gateway API from its module.
package main

import (
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"
)

func main() {
	log.SetFlags(0)
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		log.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard")
	var all []json.RawMessage
	for _, name := range []string{"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"} {
		text, err := os.ReadFile(filepath.Join(dir, "gateway.networking.k8s.io_"+name+".yaml"))
		if err != nil {
			log.Fatal(err)
		}
		object, err := yaml.YAMLToJSON(text)
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, object)
	}
	list, err := json.Marshal(all)
	if err != nil {
		log.Fatal(err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("zz_generated.definitions.json.zst", w.EncodeAll(list, nil), 0o644); err != nil {
		log.Fatal(err)
	}
}
