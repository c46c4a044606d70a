package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := pack(context.Background(), "zz_generated.definitions.json.zst"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack(ctx context.Context, into string) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "standard")
	var all []json.RawMessage
	for _, name := range []string{"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"} {
		text, err := os.ReadFile(filepath.Join(dir, "gateway.networking.k8s.io_"+name+".yaml"))
		if err != nil {
			return err
		}
		object, err := yaml.YAMLToJSON(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, object)
	}
	list, err := json.Marshal(all)
	if err != nil {
		return err
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	return os.WriteFile(into, w.EncodeAll(list, nil), 0o644)
}
