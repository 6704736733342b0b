package ir

import "fmt"

// Protocol is how a connection carries messages, NCCL's word and spelling.
type Protocol uint8

// NCCL's protocols. Direct and auto selection are for native programs only and
// not part of this list yet.
const (
	Simple Protocol = iota
	LL
	LL128
)

var protocolNames = [...]string{"Simple", "LL", "LL128"}

// String is NCCL's spelling: Simple, LL, LL128.
func (p Protocol) String() string {
	if int(p) < len(protocolNames) {
		return protocolNames[p]
	}
	return fmt.Sprintf("Protocol(%d)", p)
}

// ParseProtocol reads NCCL's spelling, upper or lower case as there.
func ParseProtocol(s string) (Protocol, error) {
	for i, n := range protocolNames {
		if s == n {
			return Protocol(i), nil
		}
	}
	return 0, fmt.Errorf("protocol: got %q, want Simple, LL or LL128", s)
}

// Transport is what one connection (source, destination, channel) can hold:
// Slots messages in flight, each of up to SlotBytes of payload.
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

// Regime is K, the number of chunks that one message carries when nBytes are
// cut into nchunks: clamp(floor(SlotBytes/chunk), 1, MaxRegime).
func (t Transport) Regime(nBytes int64, nchunks int32) int32 {
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
	case k <= 1:
		return 0
	case k > MaxRegime || int64(k) > t.SlotBytes:
		return -1
	}
	return int64(nchunks) * (t.SlotBytes / int64(k))
}

// Messages is the number of messages that a step of count chunks sends in
// regime k.
func Messages(count, k int32) int32 { return (count + k - 1) / k }
