package ir

import (
	"fmt"
	"math"
)

// Protocol is how a connection carries messages, NCCL's word and spelling.
type Protocol uint8

// NCCL's protocols, and Direct, a rendezvous without slots that only native
// programs have (docs/direct.md). AutoProtocol is for programs as written: the
// compiler chooses one of the others.
const (
	Simple Protocol = iota
	LL
	LL128
	Direct
	AutoProtocol
)

var protocolNames = [...]string{"Simple", "LL", "LL128", "Direct", "auto"}

// String is NCCL's spelling: Simple, LL, LL128; and Direct, and auto.
func (p Protocol) String() string {
	if int(p) < len(protocolNames) {
		return protocolNames[p]
	}
	return fmt.Sprintf("Protocol(%d)", p)
}

// ParseProtocol reads NCCL's spelling, upper or lower case as there. It takes
// protocols alone, not the wish that one be chosen.
func ParseProtocol(s string) (Protocol, error) {
	for i, n := range protocolNames[:AutoProtocol] {
		if s == n {
			return Protocol(i), nil
		}
	}
	return 0, fmt.Errorf("protocol: got %q, want Simple, LL, LL128 or Direct", s)
}

// Transport is what one connection (source, destination, channel) can hold:
// Slots messages in flight, each of up to SlotBytes of payload. The zero value is
// Direct's: no slots, a message is a rendezvous of any size.
//
// A step of count c is sent as ceil(c/K) messages where K, the Regime, follows
// from the size of a chunk; see microsoft/msccl src/collectives/device/
// msccl_interpreter.h and the channel layout of NCCL 2.12.
type Transport struct {
	Slots     int32
	SlotBytes int64
}

// MaxRegime is the largest number of chunks the runtimes put in one message
// (MSCCL's count is less than 72).
const MaxRegime = 71

// ChunkBytes is the size of one chunk when nBytes are cut into nchunks.
func ChunkBytes(nBytes int64, nchunks int32) int64 {
	if nchunks <= 0 || nBytes <= 0 {
		return nBytes
	}
	return (nBytes-1)/int64(nchunks) + 1 // no overflow for the largest sizes
}

// Rendezvous reports whether messages go without slots, from memory to memory.
func (t Transport) Rendezvous() bool { return t.Slots == 0 }

// Regime is K, the number of chunks that one message carries when nBytes are
// cut into nchunks: clamp(floor(SlotBytes/chunk), 1, MaxRegime). Without slots
// nothing bounds it: every step is one message.
func (t Transport) Regime(nBytes int64, nchunks int32) int32 {
	if t.Rendezvous() {
		return math.MaxInt32
	}
	chunk := ChunkBytes(nBytes, nchunks)
	if chunk <= 0 {
		return MaxRegime
	}
	return int32(min(max(t.SlotBytes/chunk, 1), MaxRegime))
}

// MaxBytesFor is the largest total size at which the regime is still at least
// k (k > 1); for k <= 1 every size qualifies and the result is 0, "no limit".
// It is -1 where not even one byte a chunk qualifies: more chunks than MaxRegime
// or than a slot has bytes.
func (t Transport) MaxBytesFor(k, nchunks int32) int64 {
	switch {
	case k <= 1 || t.Rendezvous():
		return 0
	case k > MaxRegime || int64(k) > t.SlotBytes:
		return -1
	}
	return int64(nchunks) * (t.SlotBytes / int64(k))
}

// Messages is the number of messages that a step of count chunks sends in
// regime k.
func Messages(count, k int32) int32 {
	if count < 1 {
		return 0
	}
	return (count-1)/k + 1 // no overflow for the largest regime
}
