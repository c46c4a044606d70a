package oci

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// linuxResources translates limits; zero means none everywhere in the CRI.
func linuxResources(r *runtimeapi.LinuxContainerResources, h Host) *specs.LinuxResources {
	out := &specs.LinuxResources{CPU: &specs.LinuxCPU{}, Memory: &specs.LinuxMemory{}}
	if r == nil {
		return &specs.LinuxResources{}
	}
	if v := uint64(r.GetCpuShares()); r.GetCpuShares() > 0 {
		out.CPU.Shares = &v
	}
	if v := r.GetCpuQuota(); v != 0 {
		out.CPU.Quota = &v
	}
	if v := uint64(r.GetCpuPeriod()); r.GetCpuPeriod() > 0 {
		out.CPU.Period = &v
	}
	out.CPU.Cpus, out.CPU.Mems = r.GetCpusetCpus(), r.GetCpusetMems()
	if v := r.GetMemoryLimitInBytes(); v != 0 {
		out.Memory.Limit = &v
	}
	if v := r.GetMemorySwapLimitInBytes(); v != 0 && h.Swap {
		out.Memory.Swap = &v
	} else if limit := out.Memory.Limit; limit != nil && *limit > 0 && h.Swap {
		v := *limit // a container with a limit does not swap unless told so
		out.Memory.Swap = &v
	}
	if h.Hugetlb {
		for _, l := range r.GetHugepageLimits() {
			out.HugepageLimits = append(out.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: l.GetPageSize(), Limit: l.GetLimit()})
		}
	}
	if len(r.GetUnified()) > 0 && h.CgroupV2 {
		out.Unified = r.GetUnified()
	}
	if *out.CPU == (specs.LinuxCPU{}) {
		out.CPU = nil
	}
	if *out.Memory == (specs.LinuxMemory{}) {
		out.Memory = nil
	}
	return out
}

// Update is the body of the runtime's update command for new limits.
func Update(r *runtimeapi.LinuxContainerResources, h Host) *specs.LinuxResources {
	return linuxResources(r, h)
}

// Merge returns limits with the fields of change that are set.
func Merge(old, change *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	out := &runtimeapi.LinuxContainerResources{
		CpuPeriod: old.GetCpuPeriod(), CpuQuota: old.GetCpuQuota(), CpuShares: old.GetCpuShares(),
		MemoryLimitInBytes: old.GetMemoryLimitInBytes(), OomScoreAdj: old.GetOomScoreAdj(),
		CpusetCpus: old.GetCpusetCpus(), CpusetMems: old.GetCpusetMems(), HugepageLimits: old.GetHugepageLimits(),
		Unified: old.GetUnified(), MemorySwapLimitInBytes: old.GetMemorySwapLimitInBytes(),
	}
	set := func(dst *int64, v int64) {
		if v != 0 {
			*dst = v
		}
	}
	set(&out.CpuPeriod, change.GetCpuPeriod())
	set(&out.CpuQuota, change.GetCpuQuota())
	set(&out.CpuShares, change.GetCpuShares())
	set(&out.MemoryLimitInBytes, change.GetMemoryLimitInBytes())
	set(&out.OomScoreAdj, change.GetOomScoreAdj())
	set(&out.MemorySwapLimitInBytes, change.GetMemorySwapLimitInBytes())
	if v := change.GetCpusetCpus(); v != "" {
		out.CpusetCpus = v
	}
	if v := change.GetCpusetMems(); v != "" {
		out.CpusetMems = v
	}
	if v := change.GetHugepageLimits(); len(v) > 0 {
		out.HugepageLimits = v
	}
	if v := change.GetUnified(); len(v) > 0 {
		out.Unified = v
	}
	return out
}
