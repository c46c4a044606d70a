package app

import (
	"github.com/spf13/pflag"

	admissionall "github.com/periplus/periplus/apiserver/admission/all"
)

// AdmissionConfig says who is asked about writes, as kube-apiserver's flags of the same names.
type AdmissionConfig struct {
	EnableAdmission  []string `json:"enable-admission-plugins,omitempty"`
	DisableAdmission []string `json:"disable-admission-plugins,omitempty"`
	AdmissionFile    string   `json:"admission-control-config-file,omitempty"`
}

func (c *AdmissionConfig) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.EnableAdmission, "enable-admission-plugins", c.EnableAdmission, "admission plug-ins that are asked besides those that are on by default")
	f.StringSliceVar(&c.DisableAdmission, "disable-admission-plugins", c.DisableAdmission, "admission plug-ins that are not asked")
	f.StringVar(&c.AdmissionFile, "admission-control-config-file", c.AdmissionFile, "AdmissionConfiguration with the configurations of plug-ins")
}

// options reads the file, if there is one.
func (c *AdmissionConfig) options() (admissionall.Options, error) {
	o := admissionall.Options{Enable: c.EnableAdmission, Disable: c.DisableAdmission}
	if c.AdmissionFile == "" {
		return o, nil
	}
	var err error
	o.Configurations, err = admissionall.Load(c.AdmissionFile)
	return o, err
}
