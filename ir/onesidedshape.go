package ir

// Where says whose memory an operand is.
type Where uint8

// The places of an operand.
const (
	WhereNowhere Where = iota // the operation has no such operand
	WhereLocal                // the rank's own
	WhereRemote               // another rank's
	WhereGroup                // the same place on every rank of a switch group
)

// String is the word for messages.
func (w Where) String() string { return [...]string{"nowhere", "local", "remote", "group"}[w] }

// opSide describes the sources, or the destinations, of a kind: how many, where
// the first, the second and the others are, and which of them hold packets.
type opSide struct {
	min, max     int // max 0 is no limit where min is not 0
	at           [3]Where
	packets      [3]bool
	packetsByPut bool // via ports packets are read, via memory plain data
}

// refUse is what Refs of a kind name.
type refUse uint8

const (
	refNone refUse = iota
	refChannels
	refPorts // one channel a destination via ports, none via memory
	refSemaphores
	refBarrier
)

type opShape struct {
	via      []ChannelKind // nil: none
	src, dst opSide
	pairs    bool // source k goes to destination k
	refs     refUse
}

var (
	local1  = opSide{min: 1, max: 1, at: [3]Where{WhereLocal}}
	locals  = opSide{min: 1, at: [3]Where{WhereLocal, WhereLocal, WhereLocal}}
	remotes = opSide{min: 1, at: [3]Where{WhereRemote, WhereRemote, WhereRemote}}
	packet1 = opSide{min: 1, max: 1, at: [3]Where{WhereLocal}, packets: [3]bool{true}}
	group1  = opSide{min: 1, max: 1, at: [3]Where{WhereGroup}}
	// A local one, then any number of remote ones.
	localRemotes  = opSide{min: 1, at: [3]Where{WhereLocal, WhereRemote, WhereRemote}}
	localPackets  = opSide{min: 1, at: [3]Where{WhereLocal, WhereLocal, WhereLocal}, packets: [3]bool{false, true, true}}
	remotePackets = opSide{min: 1, at: [3]Where{WhereRemote, WhereRemote, WhereRemote}, packets: [3]bool{true, true, true}}

	viaSignals = []ChannelKind{ChannelMemory, ChannelPort}
	viaMemory  = []ChannelKind{ChannelMemory}
	viaPort    = []ChannelKind{ChannelPort}
	viaSwitch  = []ChannelKind{ChannelSwitch}
)

var opShapes = [...]opShape{
	OpSync:           {},
	OpBarrier:        {refs: refBarrier},
	OpSignal:         {via: viaSignals, refs: refChannels},
	OpWait:           {via: viaSignals, refs: refChannels},
	OpRelaxedSignal:  {via: viaSignals, refs: refChannels},
	OpRelaxedWait:    {via: viaSignals, refs: refChannels},
	OpFlush:          {via: viaPort, refs: refChannels},
	OpPut:            {via: viaSignals, src: locals, dst: remotes, pairs: true, refs: refPorts},
	OpPutSignal:      {via: viaPort, src: locals, dst: remotes, pairs: true, refs: refPorts},
	OpPutSignalFlush: {via: viaPort, src: locals, dst: remotes, pairs: true, refs: refPorts},
	OpGet:            {via: viaMemory, src: remotes, dst: locals, pairs: true},
	OpCopy:           {src: local1, dst: local1},
	OpReduceLocal:    {src: locals, dst: local1},
	OpReduceSend:     {via: viaMemory, src: locals, dst: localRemotes},
	OpReadReduce:     {via: viaMemory, src: localRemotes, dst: local1},
	OpReadReduceSend: {via: viaMemory, src: localRemotes, dst: localRemotes},
	OpCopyToPackets:  {src: local1, dst: packet1},
	OpUnpackPackets:  {src: packet1, dst: local1},
	OpPutPackets:     {via: viaSignals, src: opSide{min: 1, at: locals.at, packetsByPut: true}, dst: remotePackets, pairs: true, refs: refPorts},
	OpReadPutPackets: {via: viaSignals, src: packet1, dst: remotePackets, refs: refPorts},
	OpReducePackets:  {src: localPackets, dst: local1},
	OpReduceSendPackets: {via: viaMemory, src: localPackets,
		dst: opSide{min: 1, at: localRemotes.at, packets: localPackets.packets}},
	OpReduceCopyPackets: {src: localPackets,
		dst: opSide{min: 2, max: 2, at: locals.at, packets: localPackets.packets}},
	OpReduceCopySendPackets: {via: viaMemory, src: localPackets,
		dst: opSide{min: 2, at: [3]Where{WhereLocal, WhereLocal, WhereRemote}, packets: localPackets.packets}},
	OpGroupStore:        {via: viaSwitch, src: local1, dst: group1},
	OpGroupStorePackets: {via: viaSwitch, src: packet1, dst: opSide{min: 1, max: 1, at: group1.at, packets: [3]bool{true}}},
	OpGroupReduceStore:  {via: viaSwitch, src: group1, dst: group1},
	OpSemaphoreAcquire:  {refs: refSemaphores},
	OpSemaphoreRelease:  {refs: refSemaphores},
	OpPipeline:          {},
}

// Operand tells where operand i of the sources or destinations of an operation
// is, and whether it holds packets. Packets are always in scratch.
func (k OpKind) Operand(via ChannelKind, destination bool, i int) (w Where, packets bool) {
	if int(k) >= len(opShapes) {
		return WhereNowhere, false
	}
	side := &opShapes[k].src
	if destination {
		side = &opShapes[k].dst
	}
	if side.min == 0 || side.max > 0 && i >= side.max {
		return WhereNowhere, false
	}
	i = min(i, len(side.at)-1)
	return side.at[i], side.packets[i] || side.packetsByPut && via == ChannelPort
}

// Operands are the least and the greatest number of sources or destinations;
// no limit is 0, unless least is 0 too.
func (k OpKind) Operands(destination bool) (least, most int) {
	if int(k) >= len(opShapes) {
		return 0, 0
	}
	if destination {
		return opShapes[k].dst.min, opShapes[k].dst.max
	}
	return opShapes[k].src.min, opShapes[k].src.max
}

// Pairs reports whether source i goes to destination i, and to no other.
func (k OpKind) Pairs() bool { return int(k) < len(opShapes) && opShapes[k].pairs }

// Vias are the kinds of channel that an operation can use; none for a local one.
// The slice is shared: don't change it.
func (k OpKind) Vias() []ChannelKind {
	if int(k) >= len(opShapes) {
		return nil
	}
	return opShapes[k].via
}

// Reduces reports whether the operation adds values up.
func (k OpKind) Reduces() bool {
	switch k {
	case OpReduceLocal, OpReduceSend, OpReadReduce, OpReadReduceSend, OpReducePackets, OpReduceSendPackets,
		OpReduceCopyPackets, OpReduceCopySendPackets, OpGroupReduceStore:
		return true
	}
	return false
}
