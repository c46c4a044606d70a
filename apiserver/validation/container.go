package validation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}

// containers checks the main containers.
func (c *podSpecCheck) containers(at *field.Path) {
	if len(c.spec.Containers) == 0 {
		c.required(at, "")
		return
	}
	seen := names{}
	for i := range c.spec.Containers {
		ctr, p := &c.spec.Containers[i], at.Index(i)
		c.container(ctr, p)
		if seen.seen(ctr.Name) {
			c.duplicate(p.Child("name"), ctr.Name)
		}
		c.lifecycleAndProbes(ctr, p)
		c.containerRestart(ctr, false, p)
	}
	ports := names{}
	for i := range c.spec.Containers {
		c.hostPortConflicts(&c.spec.Containers[i], at.Index(i), ports)
	}
}

// initContainers checks init containers; those that restart always are sidecars
// and may have what main containers have.
func (c *podSpecCheck) initContainers(at *field.Path) {
	seen := names{}
	for i := range c.spec.Containers {
		seen[c.spec.Containers[i].Name] = true
	}
	for i := range c.spec.InitContainers {
		ctr, p := &c.spec.InitContainers[i], at.Index(i)
		c.container(ctr, p)
		c.containerRestart(ctr, true, p)
		sidecar := ctr.RestartPolicy != nil && *ctr.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if seen[ctr.Name] {
			c.duplicate(p.Child("name"), ctr.Name)
		} else if ctr.Name != "" {
			seen[ctr.Name] = true // one without a name is told of if another container has none
		}
		c.hostPortConflicts(ctr, at.Index(0), names{})
		if sidecar {
			c.lifecycleAndProbes(ctr, p)
			continue
		}
		const onlySidecars = "may not be set for init containers without restartPolicy=Always"
		if ctr.Lifecycle != nil {
			c.forbidden(p.Child("lifecycle"), onlySidecars)
		}
		if ctr.LivenessProbe != nil {
			c.forbidden(p.Child("livenessProbe"), onlySidecars)
		}
		if ctr.ReadinessProbe != nil {
			c.forbidden(p.Child("readinessProbe"), onlySidecars)
		}
		if ctr.StartupProbe != nil {
			c.forbidden(p.Child("startupProbe"), onlySidecars)
		}
		for j, r := range ctr.ResizePolicy {
			if r.RestartPolicy == corev1.RestartContainer {
				c.invalid(p.Child("resizePolicy").Index(j).Child("restartPolicy"), r.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers")
			}
		}
	}
}

// ephemeralContainers checks debug containers, which have no ports, probes,
// hooks or resources of their own.
func (c *podSpecCheck) ephemeralContainers(at *field.Path) {
	others, seen := names{}, names{}
	for _, containers := range [][]corev1.Container{c.spec.Containers, c.spec.InitContainers} {
		for i := range containers {
			others[containers[i].Name], seen[containers[i].Name] = true, true
		}
	}
	const notHere = "cannot be set for an Ephemeral Container"
	for i := range c.spec.EphemeralContainers {
		ephemeral, p := &c.spec.EphemeralContainers[i], at.Index(i)
		ctr := (*corev1.Container)(&ephemeral.EphemeralContainerCommon)
		c.container(ctr, p)
		c.imageSpace(ctr, p)
		if seen.seen(ctr.Name) {
			c.duplicate(p.Child("name"), ctr.Name)
		}
		if target := ephemeral.TargetContainerName; target != "" && !others[target] {
			c.notFound(p.Child("targetContainerName"), target)
		}
		for _, f := range []struct {
			name  string
			given bool
		}{
			{"ports", ctr.Ports != nil}, {"resources", !emptyRequirements(&ctr.Resources)}, {"resizePolicy", ctr.ResizePolicy != nil},
			{"restartPolicy", ctr.RestartPolicy != nil}, {"restartPolicyRules", ctr.RestartPolicyRules != nil},
			{"livenessProbe", ctr.LivenessProbe != nil}, {"readinessProbe", ctr.ReadinessProbe != nil},
			{"startupProbe", ctr.StartupProbe != nil}, {"lifecycle", ctr.Lifecycle != nil},
		} {
			if f.given {
				c.forbidden(p.Child(f.name), notHere)
			}
		}
		for j, m := range ctr.VolumeMounts {
			if m.SubPath != "" {
				c.forbidden(p.Child("volumeMounts").Index(j).Child("subPath"), notHere)
			}
			if m.SubPathExpr != "" {
				c.forbidden(p.Child("volumeMounts").Index(j).Child("subPathExpr"), notHere)
			}
		}
	}
}

func emptyRequirements(r *corev1.ResourceRequirements) bool {
	return r.Limits == nil && r.Requests == nil && r.Claims == nil
}

// container checks what containers of all sorts share.
func (c *podSpecCheck) container(ctr *corev1.Container, at *field.Path) {
	if ctr.Name == "" {
		c.required(at.Child("name"), "")
	} else {
		invalidChild(&c.errorList, at, "name", ctr.Name, validation.IsDNS1123Label(ctr.Name))
	}
	if ctr.Image == "" {
		c.required(at.Child("image"), "")
	}
	oneOfChild(&c.errorList, at, "terminationMessagePolicy", ctr.TerminationMessagePolicy,
		corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	containerPorts(&c.errorList, ctr.Ports, at.Child("ports"))
	environment(&c.errorList, ctr.Env, at.Child("env"))
	if len(ctr.EnvFrom) > 0 {
		environmentFrom(&c.errorList, ctr.EnvFrom, at.Child("envFrom"))
	}
	c.mounts(ctr, at.Child("volumeMounts"))
	if len(ctr.VolumeDevices) > 0 {
		c.devices(ctr, at.Child("volumeDevices"))
	}
	oneOfChild(&c.errorList, at, "imagePullPolicy", ctr.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	c.add(requirements(&ctr.Resources, ContainerResourceName, c.claims, at.Child("resources"))...)
	if len(ctr.ResizePolicy) > 0 {
		c.resizePolicies(ctr.ResizePolicy, at.Child("resizePolicy"))
	}
	if ctr.SecurityContext != nil {
		containerSecurity(&c.errorList, ctr.SecurityContext, at.Child("securityContext"), c.hostUsers)
	}
}

func (c *podSpecCheck) lifecycleAndProbes(ctr *corev1.Container, at *field.Path) {
	if ctr.Lifecycle != nil {
		lifecycle(&c.errorList, ctr.Lifecycle, c.spec.TerminationGracePeriodSeconds, at.Child("lifecycle"))
	}
	if ctr.LivenessProbe != nil {
		livenessProbe(&c.errorList, ctr.LivenessProbe, at.Child("livenessProbe"))
	}
	if ctr.ReadinessProbe != nil {
		readinessProbe(&c.errorList, ctr.ReadinessProbe, at.Child("readinessProbe"))
	}
	if ctr.StartupProbe != nil {
		livenessProbe(&c.errorList, ctr.StartupProbe, at.Child("startupProbe"))
	}
}

// containerRestart checks a container's own restart policy and its rules (KEP-5307).
func (c *podSpecCheck) containerRestart(ctr *corev1.Container, init bool, at *field.Path) {
	policy := at.Child("restartPolicy")
	switch {
	case ctr.RestartPolicy != nil:
		oneOfOrEmpty(&c.errorList, policy, *ctr.RestartPolicy,
			corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	case len(ctr.RestartPolicyRules) > 0:
		c.required(policy, "must specify restartPolicy when restart rules are used")
	}
	if init && ctr.RestartPolicy == nil {
		return // an init container without a policy of its own is not asked for more
	}
	rules := at.Child("restartPolicyRules")
	if n := len(ctr.RestartPolicyRules); n > 20 {
		c.add(field.TooMany(rules, n, 20))
	}
	for i, r := range ctr.RestartPolicyRules {
		p := rules.Index(i)
		oneOfOrEmpty(&c.errorList, p.Child("action"), r.Action,
			corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers)
		if r.ExitCodes == nil {
			c.required(p.Child("exitCodes"), "must be specified")
			continue
		}
		oneOfOrEmpty(&c.errorList, p.Child("exitCodes", "operator"), r.ExitCodes.Operator,
			corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn)
		if n := len(r.ExitCodes.Values); n > 255 {
			c.add(field.TooMany(p.Child("exitCodes", "values"), n, 255))
		}
	}
}

func containerPorts(e *errorList, ports []corev1.ContainerPort, at *field.Path) {
	seen := names{}
	for i, port := range ports {
		p := at.Index(i)
		if port.Name != "" {
			if bad := validation.IsValidPortName(port.Name); len(bad) > 0 {
				invalidChild(e, p, "name", port.Name, bad)
			} else if seen.seen(port.Name) {
				e.duplicate(p.Child("name"), port.Name)
			}
		}
		if port.ContainerPort == 0 {
			e.required(p.Child("containerPort"), "")
		} else {
			invalidChild(e, p, "containerPort", port.ContainerPort, validation.IsValidPortNum(int(port.ContainerPort)))
		}
		if port.HostPort != 0 {
			invalidChild(e, p, "hostPort", port.HostPort, validation.IsValidPortNum(int(port.HostPort)))
		}
		oneOfChild(e, p, "protocol", port.Protocol, protocols...)
	}
}

// hostPortConflicts finds host ports that are taken by an earlier container.
func (c *podSpecCheck) hostPortConflicts(ctr *corev1.Container, at *field.Path, taken names) {
	for i, port := range ctr.Ports {
		if port.HostPort == 0 {
			continue
		}
		if key := fmt.Sprintf("%s/%s/%d", port.Protocol, port.HostIP, port.HostPort); taken.seen(key) {
			c.duplicate(at.Child("ports").Index(i).Child("hostPort"), key)
		}
	}
}

func (c *podSpecCheck) resizePolicies(policies []corev1.ContainerResizePolicy, at *field.Path) {
	seen := names{}
	for i, r := range policies {
		if seen.seen(string(r.ResourceName)) {
			c.duplicate(at.Index(i), r.ResourceName)
		}
		oneOf(&c.errorList, at, r.ResourceName, corev1.ResourceCPU, corev1.ResourceMemory)
		oneOf(&c.errorList, at, r.RestartPolicy, corev1.NotRequired, corev1.RestartContainer)
		if c.spec.RestartPolicy == corev1.RestartPolicyNever && r.RestartPolicy != corev1.NotRequired {
			c.invalid(at, r.RestartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
		}
	}
}

func (c *podSpecCheck) imageSpace(ctr *corev1.Container, at *field.Path) {
	if strings.TrimSpace(ctr.Image) != ctr.Image {
		c.invalid(at.Child("image"), ctr.Image, "must not have leading or trailing whitespace")
	}
}

func (c *podSpecCheck) mounts(ctr *corev1.Container, at *field.Path) {
	paths := names{}
	for i := range ctr.VolumeMounts {
		m, p := &ctr.VolumeMounts[i], at.Index(i)
		needed(&c.errorList, p, "name", m.Name)
		if c.sources[m.Name] == nil {
			c.notFound(p.Child("name"), m.Name)
		}
		needed(&c.errorList, p, "mountPath", m.MountPath)
		if paths.seen(m.MountPath) {
			c.invalid(p.Child("mountPath"), m.MountPath, "must be unique")
		}
		if slices.ContainsFunc(ctr.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == m.Name }) {
			c.invalid(p.Child("name"), m.Name, "must not already exist in volumeDevices")
		}
		if slices.ContainsFunc(ctr.VolumeDevices, func(d corev1.VolumeDevice) bool {
			return d.DevicePath == m.MountPath && lastDevice(ctr, d.Name) == m.MountPath
		}) {
			c.invalid(p.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices")
		}
		if m.SubPath != "" {
			c.add(relativePath(m.SubPath, at.Child("subPath"))...)
		}
		if m.SubPathExpr != "" {
			if m.SubPath != "" {
				c.invalid(p.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
			}
			c.add(relativePath(m.SubPathExpr, at.Child("subPathExpr"))...)
		}
		c.propagation(m, ctr, at)
	}
}

func (c *podSpecCheck) propagation(m *corev1.VolumeMount, ctr *corev1.Container, at *field.Path) {
	if mode := m.MountPropagation; mode != nil {
		oneOfOrEmpty(&c.errorList, at.Child("mountPropagation"), *mode,
			corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
		privileged := ctr.SecurityContext != nil && ctr.SecurityContext.Privileged != nil && *ctr.SecurityContext.Privileged
		if *mode == corev1.MountPropagationBidirectional && !privileged {
			c.forbidden(at.Child("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers")
		}
	}
	if m.RecursiveReadOnly == nil {
		return
	}
	p := at.Child("recursiveReadOnly")
	oneOfOrEmpty(&c.errorList, p, *m.RecursiveReadOnly,
		corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyIfPossible)
	if r := *m.RecursiveReadOnly; r == corev1.RecursiveReadOnlyEnabled || r == corev1.RecursiveReadOnlyIfPossible {
		if !m.ReadOnly {
			c.forbidden(p, "may only be specified when readOnly is true")
		}
		if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
			c.forbidden(p, "may only be specified when mountPropagation is None or not specified")
		}
	}
}

// lastDevice returns the path of the last of a container's devices that has a name: of two
// with one name only that one counts.
func lastDevice(ctr *corev1.Container, name string) (path string) {
	for _, d := range ctr.VolumeDevices {
		if d.Name == name {
			path = d.DevicePath
		}
	}
	return path
}

func (c *podSpecCheck) devices(ctr *corev1.Container, at *field.Path) {
	paths, seen, mounts := names{}, names{}, map[string]string{}
	for _, m := range ctr.VolumeMounts {
		mounts[m.Name] = m.MountPath // of two mounts of a volume the last counts
	}
	for i, d := range ctr.VolumeDevices {
		p := at.Index(i)
		needed(&c.errorList, p, "name", d.Name)
		if d.Name != "" && seen.seen(d.Name) {
			c.invalid(p.Child("name"), d.Name, "must be unique")
		}
		switch source := c.sources[d.Name]; {
		case source == nil:
			c.notFound(p.Child("name"), d.Name)
		case source.PersistentVolumeClaim == nil && source.Ephemeral == nil:
			c.invalid(p.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		needed(&c.errorList, p, "devicePath", d.DevicePath)
		if paths[d.DevicePath] {
			c.invalid(p.Child("devicePath"), d.DevicePath, "must be unique")
		}
		if len(noBacksteps(d.DevicePath, at)) > 0 {
			c.invalid(p.Child("devicePath"), d.DevicePath, "can not contain backsteps ('..')")
		} else {
			paths[d.DevicePath] = true
		}
		if _, mounted := mounts[d.Name]; mounted {
			c.invalid(p.Child("name"), d.Name, "must not already exist in volumeMounts")
		}
		if slices.Contains(slices.Collect(maps.Values(mounts)), d.DevicePath) {
			c.invalid(p.Child("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts")
		}
	}
}
