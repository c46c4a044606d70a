package containers

import (
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/cgroup"
	"github.com/periplus/periplus/linux/netstat"
)

const (
	counter = runtimeapi.MetricType_COUNTER
	gauge   = runtimeapi.MetricType_GAUGE
)

// one is a metric without labels of its own.
func one(name, help string, kind runtimeapi.MetricType, value func(*sample) uint64) metric {
	return metric{name, help, kind, nil, func(s *sample) []point { return []point{{value: value(s)}} }}
}

func seconds(nanos uint64) uint64 { return nanos / 1e9 }

// containerMetrics are those of a container, by the names that cAdvisor gave them.
var containerMetrics = []metric{
	one("container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", counter, func(s *sample) uint64 { return seconds(s.cpu.CPUNanos) }),
	one("container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.", counter, func(s *sample) uint64 { return seconds(s.detail.UserNanos) }),
	one("container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.", counter, func(s *sample) uint64 { return seconds(s.detail.SystemNanos) }),
	one("container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", counter, func(s *sample) uint64 { return s.detail.Periods }),
	one("container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", counter, func(s *sample) uint64 { return s.detail.ThrottledPeriods }),
	one("container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.", counter, func(s *sample) uint64 { return seconds(s.detail.ThrottledNanos) }),
	one("container_spec_cpu_period", "CPU period of the container.", gauge, func(s *sample) uint64 { return s.detail.Period }),
	one("container_spec_cpu_shares", "CPU share of the container.", gauge, func(s *sample) uint64 { return s.detail.Shares }),
	{"container_spec_cpu_quota", "CPU quota of the container.", gauge, nil, func(s *sample) []point {
		if s.detail.Quota <= 0 {
			return nil
		}
		return []point{{value: uint64(s.detail.Quota)}}
	}},

	one("container_memory_usage_bytes", "Current memory usage in bytes, including all memory regardless of when it was accessed.", gauge, func(s *sample) uint64 { return s.cpu.Memory }),
	one("container_memory_working_set_bytes", "Current working set in bytes.", gauge, func(s *sample) uint64 { return s.cpu.WorkingSet }),
	one("container_memory_rss", "Size of RSS in bytes.", gauge, func(s *sample) uint64 { return s.cpu.RSS }),
	one("container_memory_swap", "Container swap usage in bytes.", gauge, func(s *sample) uint64 { return s.cpu.Swap }),
	one("container_memory_cache", "Number of bytes of page cache memory.", gauge, func(s *sample) uint64 { return s.detail.Cache }),
	one("container_memory_mapped_file", "Size of memory mapped files in bytes.", gauge, func(s *sample) uint64 { return s.detail.MappedFile }),
	one("container_memory_kernel_usage", "Size of kernel memory allocated in bytes.", gauge, func(s *sample) uint64 { return s.detail.Kernel }),
	one("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes.", gauge, func(s *sample) uint64 { return s.detail.Peak }),
	one("container_memory_failcnt", "Number of memory usage hits limits.", counter, func(s *sample) uint64 { return s.detail.Failures }),
	{"container_memory_failures_total", "Cumulative count of memory allocation failures.", counter, []string{"failure_type", "scope"}, func(s *sample) []point {
		return []point{
			{s.cpu.PageFaults, []string{"pgfault", "container"}}, {s.cpu.MajorFaults, []string{"pgmajfault", "container"}},
			{s.cpu.PageFaults, []string{"pgfault", "hierarchy"}}, {s.cpu.MajorFaults, []string{"pgmajfault", "hierarchy"}},
		}
	}},
	one("container_oom_events_total", "Count of out of memory events observed for the container.", counter, func(s *sample) uint64 { return s.detail.OOMKills }),
	one("container_spec_memory_limit_bytes", "Memory limit for the container.", gauge, func(s *sample) uint64 { return s.detail.MemoryLimit }),
	one("container_spec_memory_reservation_limit_bytes", "Memory reservation limit for the container.", gauge, func(s *sample) uint64 { return s.detail.Reservation }),
	one("container_spec_memory_swap_limit_bytes", "Memory swap limit for the container.", gauge, func(s *sample) uint64 { return s.detail.SwapLimit }),
	{"container_hugetlb_usage_bytes", "Current hugepage usage in bytes.", gauge, []string{"pagesize"}, func(s *sample) []point { return hugePoints(s, func(h cgroup.Huge) uint64 { return h.Used }) }},
	{"container_hugetlb_max_usage_bytes", "Maximum hugepage usage recorded in bytes.", gauge, []string{"pagesize"}, func(s *sample) []point { return hugePoints(s, func(h cgroup.Huge) uint64 { return h.Max }) }},

	one("container_processes", "Number of processes running inside the container.", gauge, func(s *sample) uint64 { return uint64(len(s.pids)) }),
	one("container_threads", "Number of threads running inside the container.", gauge, func(s *sample) uint64 { return s.detail.Threads }),
	one("container_threads_max", "Maximum number of threads allowed inside the container, 0 if there is no limit.", gauge, func(s *sample) uint64 { return s.detail.ThreadsMax }),
	one("container_file_descriptors", "Number of open file descriptors for the container.", gauge, func(s *sample) uint64 { return s.files }),
	one("container_sockets", "Number of open sockets for the container.", gauge, func(s *sample) uint64 { return s.sockets }),
	one("container_start_time_seconds", "Start time of the container since unix epoch in seconds.", gauge, func(s *sample) uint64 { return uint64(max(0, s.started.Unix())) }),
	one("container_last_seen", "Last time a container was seen by the exporter.", gauge, func(s *sample) uint64 { return uint64(s.now.Unix()) }),

	{"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", gauge, []string{"device"}, onDevice(func(s *sample) uint64 { return uint64(s.written.Bytes) })},
	{"container_fs_limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.", gauge, []string{"device"}, onDevice(func(s *sample) uint64 { return s.fs.Capacity })},
	{"container_fs_inodes_free", "Number of available Inodes.", gauge, []string{"device"}, onDevice(func(s *sample) uint64 { return s.fs.InodesFree })},
	{"container_fs_inodes_total", "Number of Inodes.", gauge, []string{"device"}, onDevice(func(s *sample) uint64 { return s.fs.Inodes })},
	{"container_fs_reads_bytes_total", "Cumulative count of bytes read.", counter, []string{"device"}, byDevice(func(e cgroup.IO) uint64 { return e.ReadBytes })},
	{"container_fs_reads_total", "Cumulative count of reads completed.", counter, []string{"device"}, byDevice(func(e cgroup.IO) uint64 { return e.Reads })},
	{"container_fs_writes_bytes_total", "Cumulative count of bytes written.", counter, []string{"device"}, byDevice(func(e cgroup.IO) uint64 { return e.WriteBytes })},
	{"container_fs_writes_total", "Cumulative count of writes completed.", counter, []string{"device"}, byDevice(func(e cgroup.IO) uint64 { return e.Writes })},
	{"container_blkio_device_usage_total", "Blkio device bytes usage.", counter, []string{"device", "major", "minor", "operation"}, func(s *sample) []point {
		var list []point
		for _, e := range s.detail.IO {
			major, minor := strconv.FormatUint(e.Major, 10), strconv.FormatUint(e.Minor, 10)
			list = append(list, point{e.ReadBytes, []string{deviceName(e), major, minor, "Read"}}, point{e.WriteBytes, []string{deviceName(e), major, minor, "Write"}})
		}
		return list
	}},

	pressure("container_pressure_cpu_waiting_seconds_total", "Total time duration tasks in the container have waited due to CPU congestion.", "cpu", waiting),
	pressure("container_pressure_cpu_stalled_seconds_total", "Total time duration no tasks in the container could make progress due to CPU congestion.", "cpu", stalled),
	pressure("container_pressure_memory_waiting_seconds_total", "Total time duration tasks in the container have waited due to memory congestion.", "memory", waiting),
	pressure("container_pressure_memory_stalled_seconds_total", "Total time duration no tasks in the container could make progress due to memory congestion.", "memory", stalled),
	pressure("container_pressure_io_waiting_seconds_total", "Total time duration tasks in the container have waited due to IO congestion.", "io", waiting),
	pressure("container_pressure_io_stalled_seconds_total", "Total time duration no tasks in the container could make progress due to IO congestion.", "io", stalled),
}

// podMetrics are those of a pod as a whole.
var podMetrics = []metric{
	network("container_network_receive_bytes_total", "Cumulative count of bytes received.", func(i netstat.Interface) uint64 { return i.RxBytes }),
	network("container_network_receive_packets_total", "Cumulative count of packets received.", func(i netstat.Interface) uint64 { return i.RxPackets }),
	network("container_network_receive_packets_dropped_total", "Cumulative count of packets dropped while receiving.", func(i netstat.Interface) uint64 { return i.RxDropped }),
	network("container_network_receive_errors_total", "Cumulative count of errors encountered while receiving.", func(i netstat.Interface) uint64 { return i.RxErrors }),
	network("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted.", func(i netstat.Interface) uint64 { return i.TxBytes }),
	network("container_network_transmit_packets_total", "Cumulative count of packets transmitted.", func(i netstat.Interface) uint64 { return i.TxPackets }),
	network("container_network_transmit_packets_dropped_total", "Cumulative count of packets dropped while transmitting.", func(i netstat.Interface) uint64 { return i.TxDropped }),
	network("container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting.", func(i netstat.Interface) uint64 { return i.TxErrors }),
}

func network(name, help string, value func(netstat.Interface) uint64) metric {
	return metric{name, help, counter, []string{"interface"}, func(s *sample) []point {
		var list []point
		for _, i := range s.interfaces {
			list = append(list, point{value(i), []string{i.Name}})
		}
		return list
	}}
}

func onDevice(value func(*sample) uint64) func(*sample) []point {
	return func(s *sample) []point { return []point{{value(s), []string{s.device}}} }
}

func byDevice(value func(cgroup.IO) uint64) func(*sample) []point {
	return func(s *sample) []point {
		var list []point
		for _, e := range s.detail.IO {
			list = append(list, point{value(e), []string{deviceName(e)}})
		}
		return list
	}
}

func deviceName(e cgroup.IO) string {
	return strconv.FormatUint(e.Major, 10) + ":" + strconv.FormatUint(e.Minor, 10)
}

func hugePoints(s *sample, value func(cgroup.Huge) uint64) []point {
	var list []point
	for _, h := range s.detail.Huge {
		list = append(list, point{value(h), []string{h.Size}})
	}
	return list
}

func waiting(p cgroup.Pressure) uint64 { return p.WaitingMicros / 1e6 }
func stalled(p cgroup.Pressure) uint64 { return p.StalledMicros / 1e6 }

func pressure(name, help, resource string, value func(cgroup.Pressure) uint64) metric {
	return metric{name, help, counter, nil, func(s *sample) []point {
		for _, p := range s.detail.Pressure {
			if p.Resource == resource {
				return []point{{value: value(p)}}
			}
		}
		return nil
	}}
}
