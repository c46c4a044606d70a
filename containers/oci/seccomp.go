package oci

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// seccompProfile returns the filter of system calls, nil for none.
func seccompProfile(sc *runtimeapi.LinuxContainerSecurityContext, h Host, caps []string) (*specs.LinuxSeccomp, error) {
	p := sc.GetSeccomp()
	if p == nil || sc.GetPrivileged() || p.GetProfileType() == runtimeapi.SecurityProfile_Unconfined {
		return nil, nil
	}
	if p.GetProfileType() == runtimeapi.SecurityProfile_Localhost {
		if !h.Seccomp {
			return nil, fmt.Errorf("seccomp profile %s: the kernel does not support seccomp", p.GetLocalhostRef())
		}
		return localProfile(p.GetLocalhostRef(), h.SeccompDir)
	}
	if !h.Seccomp {
		return nil, nil
	}
	return defaultProfile(caps), nil
}

func localProfile(name, dir string) (*specs.LinuxSeccomp, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	var s specs.LinuxSeccomp
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("seccomp profile %s: %w", name, err)
	}
	if s.DefaultAction == "" {
		return nil, fmt.Errorf("seccomp profile %s: defaultAction is missing", name)
	}
	return &s, nil
}

// defaultProfile allows what programs need and refuses what only somebody who
// manages the machine needs, unless a capability says that this is one.
func defaultProfile(caps []string) *specs.LinuxSeccomp {
	eperm, enosys := uint(1), uint(38)
	allowed := strings.Fields(commonCalls)
	for _, c := range capabilityCalls {
		if slices.Contains(caps, c.capability) {
			allowed = append(allowed, strings.Fields(c.calls)...)
		}
	}
	s := &specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &eperm,
		Architectures:   architectures(),
	}
	if !slices.Contains(caps, "CAP_SYS_ADMIN") {
		// clone may make no namespaces. clone3 hides its flags from filters, so
		// it "does not exist", and the C library falls back to clone.
		s.Syscalls = append(s.Syscalls,
			specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
				{Index: 0, Value: namespaceFlags, ValueTwo: 0, Op: specs.OpMaskedEqual}}},
			specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &enosys})
	}
	// Sockets of every family but AF_VSOCK, which reaches hypervisors.
	const afVsock = 40
	s.Syscalls = append(s.Syscalls,
		specs.LinuxSyscall{Names: allowed, Action: specs.ActAllow},
		specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: afVsock, Op: specs.OpNotEqual}}})
	// The execution domains that are in use: Linux, 32 bit, UNAME26 and "tell me".
	for _, persona := range []uint64{0, 0x8, 0x20000, 0x20008, 0xffffffff} {
		s.Syscalls = append(s.Syscalls, specs.LinuxSyscall{Names: []string{"personality"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: persona, Op: specs.OpEqualTo}}})
	}
	return s
}

// namespaceFlags are CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}.
const namespaceFlags = 0x7e020000

func architectures() []specs.Arch {
	switch runtime.GOARCH {
	case "amd64":
		return []specs.Arch{specs.ArchX86_64, specs.ArchX86, specs.ArchX32}
	case "arm64":
		return []specs.Arch{specs.ArchAARCH64, specs.ArchARM}
	}
	return nil
}

// capabilityCalls are allowed to those that hold the capability.
var capabilityCalls = []struct{ capability, calls string }{
	{"CAP_SYS_ADMIN", `bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr
		move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2 unshare`},
	{"CAP_DAC_READ_SEARCH", `open_by_handle_at`},
	{"CAP_SYS_BOOT", `reboot`},
	{"CAP_SYS_CHROOT", `chroot`},
	{"CAP_SYS_MODULE", `delete_module init_module finit_module`},
	{"CAP_SYS_PACCT", `acct`},
	{"CAP_SYS_PTRACE", `kcmp pidfd_getfd process_madvise`},
	{"CAP_SYS_RAWIO", `iopl ioperm`},
	{"CAP_SYS_TIME", `settimeofday stime clock_settime clock_settime64`},
	{"CAP_SYS_TTY_CONFIG", `vhangup`},
	{"CAP_SYS_NICE", `get_mempolicy mbind set_mempolicy set_mempolicy_home_node`},
	{"CAP_SYSLOG", `syslog`},
	{"CAP_BPF", `bpf`},
	{"CAP_PERFMON", `perf_event_open`},
}

// commonCalls are allowed to everybody, by letter.
const commonCalls = `
accept accept4 access adjtimex alarm arch_prctl bind brk
cachestat capget capset chdir chmod chown chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64
clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat
dup dup2 dup3
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
execve execveat exit exit_group
faccessat faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32
fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs
fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat
getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer
getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32 getrlimit
get_robust_list getrusage getsid getsockname getsockopt get_thread_area gettid gettimeofday getuid getuid32 getxattr
getxattrat
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel ioctl io_destroy io_getevents io_pgetevents
io_pgetevents_time64 ioprio_get ioprio_set io_setup io_submit ipc
kill
landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listxattr
listxattrat llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64
madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall
mmap mmap2 modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend
mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap
name_to_handle_at nanosleep newfstatat _newselect
open openat openat2
pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64
preadv preadv2 prlimit64 process_mrelease process_vm_readv
process_vm_writev ptrace pselect6 pselect6_time64 pwrite64 pwritev pwritev2
read readahead readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr
removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask
rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo
sched_getaffinity sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler
sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg
sendto setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority
setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit set_robust_list setsid
setsockopt set_thread_area set_tid_address setuid setuid32 setxattr setxattrat shmat shmctl shmdt shmget shutdown
sigaltstack signalfd signalfd4 sigprocmask sigreturn socketcall socketpair splice stat stat64 statfs statfs64 statx
statmount listmount symlink symlinkat sync sync_file_range syncfs sysinfo
tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime
timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill
truncate truncate64
ugetrlimit umask uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes
vfork vmsplice wait4 waitid waitpid write writev`
