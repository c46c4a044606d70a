package install

import (
	"fmt"
	"strings"
)

// unit is the systemd unit of a role. KillMode=process ends peri alone when it is
// restarted: the monitor and the containers go on. Delegate=yes leaves their cgroups
// to peri.
func unit(role, binary string) string {
	verb := "server"
	if role == roleAgent {
		verb = "agent"
	}
	return strings.TrimLeft(fmt.Sprintf(`
[Unit]
Description=Periplus, Kubernetes %s
Documentation=https://github.com/periplus/periplus
Wants=network-online.target
After=network-online.target local-fs.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=%s %s --config %s
KillMode=process
Delegate=yes
Restart=always
RestartSec=1
TimeoutStartSec=infinity
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`, role, binary, verb, configFile), "\n")
}
