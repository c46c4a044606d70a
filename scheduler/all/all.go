package all

import (
	"github.com/periplus/periplus/scheduler"
	"github.com/periplus/periplus/scheduler/defaultbinder"
	"github.com/periplus/periplus/scheduler/defaultpreemption"
	"github.com/periplus/periplus/scheduler/imagelocality"
	"github.com/periplus/periplus/scheduler/interpodaffinity"
	"github.com/periplus/periplus/scheduler/nodeaffinity"
	"github.com/periplus/periplus/scheduler/nodename"
	"github.com/periplus/periplus/scheduler/nodeports"
	"github.com/periplus/periplus/scheduler/noderesources"
	"github.com/periplus/periplus/scheduler/nodeunschedulable"
	"github.com/periplus/periplus/scheduler/nodevolumelimits"
	"github.com/periplus/periplus/scheduler/podtopologyspread"
	"github.com/periplus/periplus/scheduler/queuesort"
	"github.com/periplus/periplus/scheduler/schedulinggates"
	"github.com/periplus/periplus/scheduler/tainttoleration"
	"github.com/periplus/periplus/scheduler/volumebinding"
	"github.com/periplus/periplus/scheduler/volumerestrictions"
	"github.com/periplus/periplus/scheduler/volumezone"
)

// Plugins returns the plug-ins of the default profile.
func Plugins() []scheduler.Use {
	return []scheduler.Use{
		{New: schedulinggates.New},
		{New: queuesort.New},
		{New: nodeunschedulable.New},
		{New: nodename.New},
		{New: tainttoleration.New, Weight: 3},
		{New: nodeaffinity.New(nodeaffinity.Args{}), Weight: 2},
		{New: nodeports.New},
		{New: volumerestrictions.New},
		{New: nodevolumelimits.New},
		{New: volumebinding.New},
		{New: volumezone.New},
		{New: noderesources.NewFit(noderesources.FitArgs{}), Weight: 1},
		{New: podtopologyspread.New, Weight: 2},
		{New: interpodaffinity.New(interpodaffinity.Args{}), Weight: 2},
		{New: defaultpreemption.New(defaultpreemption.Args{})},
		{New: noderesources.NewBalanced, Weight: 1},
		{New: imagelocality.New, Weight: 1},
		{New: defaultbinder.New},
	}
}

// Profiles returns the default profile, for pods with schedulerName "default-scheduler".
func Profiles() []scheduler.Profile {
	return []scheduler.Profile{{SchedulerName: scheduler.DefaultName, Plugins: Plugins()}}
}
