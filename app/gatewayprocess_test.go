package app

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// TestGatewaySettings: a gateway takes what it is started with, and lives on when a
// setting that it does not need is changed.
func TestGatewaySettings(t *testing.T) {
	t.Parallel()
	c := Defaults()
	c.NodeName, c.NodeIP = "n", "192.0.2.1"
	settings, err := c.gatewaySettings()
	if err != nil {
		t.Fatal(err)
	}
	got := Defaults()
	if err := yaml.UnmarshalStrict(settings, &got); err != nil {
		t.Fatal(err)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	c.MaxPods++
	if again, err := c.gatewaySettings(); err != nil || string(again) != string(settings) {
		t.Errorf("with more pods: %s, %v", again, err)
	}
}
