package ir

import "fmt"

// Target is a runtime that programs are compiled and written for.
type Target uint8

// The targets. Their limits are those of docs/formats.md.
const (
	TargetMSCCL    Target = iota // microsoft/msccl, the default
	TargetExecutor               // Azure/msccl-executor-nccl
	TargetRCCL                   // ROCm/rccl while it had MSCCL: no fused steps
	TargetPlain                  // MSCCL XML of any size, for this project's own tools
	TargetAstra                  // unfused MSCCL XML for simulators: ASTRA-sim's converter to Chakra
)

var targetNames = [...]string{"msccl", "executor", "rccl", "plain", "astra"}

// String is the name used on the command line.
func (t Target) String() string {
	if int(t) < len(targetNames) {
		return targetNames[t]
	}
	return fmt.Sprintf("Target(%d)", t)
}

// TargetNames lists the targets' names in order.
func TargetNames() []string { return targetNames[:] }

// ParseTarget reads a target's name.
func ParseTarget(s string) (Target, error) {
	for i, n := range targetNames {
		if s == n {
			return Target(i), nil
		}
	}
	return 0, fmt.Errorf("target: got %q, want msccl, executor, rccl, plain or astra", s)
}

// Limits are the numbers a runtime's parser and kernel impose; 0 is no limit.
type Limits struct {
	StepsPerTB  int32 // nops included
	TBsPerRank  int32
	DepTB       int32 // largest thread block id that a dependency can name
	Channels    int32
	TBsPerChan  int32 // send (or receive) thread blocks of one channel on a rank
	Count       int32 // largest cnt of a step
	XMLNodes    int32 // nodes that one rank's parser stores
	XMLChildren int32 // children of one node
	NameBytes   int32
	FusedSteps  bool // rcs, rrs, rrc and rrcs can run
	RecvReduce  bool // rrc can run, where FusedSteps doesn't say so already
	NoLocal     bool // cpy and re can't run
	SameOffset  bool // source and destination of a step have one offset, peers' included
}

// Limits are those of msccl-xml's section on limits, read from the runtimes'
// sources (microsoft/msccl devcomm.h, xml.h; msccl-executor-nccl
// msccl_struct.h; rccl msccl_struct.h; of astra the converter's MSCCL reader).
func (t Target) Limits() Limits {
	switch t {
	case TargetMSCCL:
		return Limits{StepsPerTB: 256, TBsPerRank: 216, DepTB: 127, Channels: 32, TBsPerChan: 32,
			Count: 71, XMLNodes: 4096, XMLChildren: 1024, NameBytes: 63, FusedSteps: true}
	case TargetExecutor:
		return Limits{StepsPerTB: 64, TBsPerRank: 1024, DepTB: 127, Channels: 32, TBsPerChan: 32,
			Count: 71, XMLNodes: 4096, XMLChildren: 1024, NameBytes: 255, FusedSteps: true}
	case TargetRCCL:
		return Limits{StepsPerTB: 64, TBsPerRank: 64, DepTB: 127, Channels: 128, TBsPerChan: 32,
			Count: 71, XMLNodes: 4096, XMLChildren: 1024, NameBytes: 255}
	case TargetAstra:
		return Limits{RecvReduce: true, NoLocal: true, SameOffset: true}
	}
	return Limits{FusedSteps: true}
}

// Transport is the connection of protocol p in the target's runtime. The
// in-flight messages are NCCL's: 8 steps a connection, of which Simple uses 4
// for a message. Plain uses the slots of msccl.
func (t Target) Transport(p Protocol) Transport {
	switch p {
	case LL:
		if t == TargetRCCL {
			return Transport{Slots: 8, SlotBytes: 16 << 10}
		}
		return Transport{Slots: 8, SlotBytes: 32 << 10}
	case LL128:
		if t == TargetRCCL {
			return Transport{Slots: 8, SlotBytes: 50176}
		}
		return Transport{Slots: 8, SlotBytes: 576000}
	}
	return Transport{Slots: 2, SlotBytes: 2 << 20}
}
