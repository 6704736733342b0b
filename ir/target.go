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
	TargetNative                 // this project's own runtimes, which know more than XML can say
)

var targetNames = [...]string{"msccl", "executor", "rccl", "plain", "astra", "native"}

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
	return 0, fmt.Errorf("target: got %q, want msccl, executor, rccl, plain, astra or native", s)
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
//
// Native programs have slots of their own. A chunk larger than a slot is done in
// tiles, and all steps run once for each tile: smaller ones fill and drain a
// program's pipeline sooner and keep what is in flight in a GPU's cache, larger ones
// need fewer rounds of waiting. A rank has a connection to each peer for each of many
// instances, so memory counts too: with these slots one takes 0.5, 1 and 2 MiB. LL
// is for messages of few KiB, which its slots hold in one tile as they are. LL128's
// are 1,024 whole lines of 120 bytes of data, where msccl's 576,000 bytes would make 5 MB
// of a connection. Simple has four slots, so that a sender is not held up by
// a receiver that is one step behind, of a size at which a tile takes some 10 us or
// more and its handshake one or two.
func (t Target) Transport(p Protocol) Transport {
	if t == TargetNative {
		switch p {
		case LL:
			return Transport{Slots: 8, SlotBytes: 32 << 10}
		case LL128:
			return Transport{Slots: 8, SlotBytes: 120 << 10}
		case Direct:
			return Transport{}
		}
		return Transport{Slots: 4, SlotBytes: 512 << 10}
	}
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
	case Direct:
		return Transport{}
	}
	return Transport{Slots: 2, SlotBytes: 2 << 20}
}
