package starlib

// Parts that the examples of one-sided operations share.
const (
	twoEnds   = "there, back = MemoryChannel(1, 0), MemoryChannel(0, 1)\n"
	twoPorts  = "there, back = PortChannel(1, 0), PortChannel(0, 1)\n"
	inputs    = "mine, other = Rank(0).get_input_buffer(), Rank(1).get_input_buffer()\n"
	theirs    = "result = Rank(1).get_output_buffer()\n"
	signaled  = "\nthere.signal()\nback.wait()"
	ownBuffer = "buffer = Rank(0).get_input_buffer()\n"
)

// oneExamples are those of one-sided operations, as examples are.
var oneExamples = map[string]string{
	"TestCollective": `coll = TestCollective(2, input_size = 4, output_size = 4)`,

	"CollectiveProgram.to_json": "prog = CollectiveProgram(\"hello\", SendRecv(2, 1, False), 2)\n" +
		"with prog:\n    Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:])\n" +
		"print(prog.to_json())",

	"Rank.get_input_buffer":  "first = Rank(0).get_input_buffer()[0:1]",
	"Rank.get_output_buffer": "last = Rank(0).get_output_buffer()[3:4]",
	"Rank.copy":              "Rank(0).copy(Rank(0).get_output_buffer()[:], Rank(0).get_input_buffer()[:], tb = 0)",
	"Rank.copy_packets":      ownBuffer + "Rank(0).copy_packets(Buffer(0, 2)[:], buffer[0:2])",
	"Rank.unpack_packets":    ownBuffer + "packets = Buffer(0, 2)[:]\nRank(0).copy_packets(packets, buffer[0:2])\nRank(0).unpack_packets(buffer[2:4], packets)",
	"Rank.reduce":            ownBuffer + "Rank(0).reduce(buffer[0:1], [buffer[1:2], buffer[2:3]], dst_chunk = Rank(0).get_output_buffer()[0:1])",
	"Rank.barrier":           ownBuffer + "Rank(0).copy(Buffer(0, 1)[:], buffer[0:1], tb = 0)\nRank(0).barrier([0, 1])\nRank(0).copy(buffer[0:1], buffer[1:2], tb = 1)",

	"MemoryChannel.signal": twoEnds + inputs + "there.put(other[0:1], mine[0:1], tb = 0)\nthere.signal(tb = 0, data_sync = SyncType.before)\nback.wait(tb = 0, data_sync = SyncType.after)",
	"MemoryChannel.wait":   twoEnds + "there.signal(relaxed = True)\nback.wait(relaxed = True)",
	"MemoryChannel.put":    twoEnds + inputs + theirs + "there.put(result[0:2], mine[0:2], tb_group = ThreadBlockGroup([0, 1]))",
	"MemoryChannel.get":    twoEnds + inputs + "there.get(Rank(0).get_output_buffer()[1:2], other[1:2])",
	"MemoryChannel.put_packets": twoEnds + inputs + theirs +
		"packets = Buffer(1, 4)[:]\nthere.put_packets(packets, mine[:])\nRank(1).unpack_packets(result[:], packets)",
	"MemoryChannel.read_put_packets": twoEnds + ownBuffer +
		"here, far = Buffer(0, 1)[:], Buffer(1, 1)[:]\nRank(0).copy_packets(here, buffer[0:1])\nthere.read_put_packets(far, here)",
	"MemoryChannel.reduce": twoEnds + inputs + "there.reduce(mine[0:1], [other[0:1]], local_dst_chunk = Rank(0).get_output_buffer()[0:1])",

	"PortChannel.signal":                    twoPorts + inputs + theirs + "there.put(result[0:1], mine[0:1])" + signaled,
	"PortChannel.wait":                      twoPorts + "there.signal(tb = 0)\nback.wait(tb = 0)",
	"PortChannel.flush":                     twoPorts + inputs + theirs + "there.put(result[0:1], mine[0:1], tb = 0)\nthere.flush(tb = 0)",
	"PortChannel.put":                       twoPorts + inputs + theirs + "there.put(result[0:1], mine[0:1])",
	"PortChannel.put_with_signal":           twoPorts + inputs + theirs + "there.put_with_signal(result[0:1], mine[0:1])\nback.wait()",
	"PortChannel.put_with_signal_and_flush": twoPorts + inputs + theirs + "there.put_with_signal_and_flush(result[0:1], mine[0:1])\nback.wait()",
	"PortChannel.put_packets": twoPorts + ownBuffer +
		"here, far = Buffer(0, 1)[:], Buffer(1, 1)[:]\nRank(0).copy_packets(here, buffer[0:1])\nthere.put_packets(far, here)",
	"PortChannel.read_put_packets": twoPorts + ownBuffer +
		"here, far = Buffer(0, 1)[:], Buffer(1, 1)[:]\nRank(0).copy_packets(here, buffer[0:1])\nthere.read_put_packets(far, here)",

	"SwitchChannel.at_rank": "at_first = SwitchChannel([0, 1], BufferType.input).at_rank(0)",
	"SwitchChannel.at_rank(r).reduce": ownBuffer + "ch = SwitchChannel([0, 1, 2, 3], BufferType.input)\n" +
		"ch.at_rank(0).reduce(buffer_offset = 0, size = 1, dst_chunk = buffer[0:1], tb = 0)\n" +
		"ch.at_rank(0).broadcast(src_chunk = buffer[0:1], buffer_offset = 0, size = 1, tb = 0)",
	"SwitchChannel.at_rank(r).broadcast": ownBuffer + "SwitchChannel([0, 1, 2, 3], BufferType.output).at_rank(0).broadcast(buffer[0:1], 0, 1)",
	"SwitchChannel.at_rank(r).broadcast_packets": ownBuffer + "scratch = [Buffer(r, 2) for r in range(4)]\n" +
		"Rank(0).copy_packets(scratch[0][0:1], buffer[0:1])\n" +
		"SwitchChannel([0, 1, 2, 3], BufferType.scratch).at_rank(0).broadcast_packets(scratch[0][0:1], 1, 1)",

	"Semaphore.acquire": "ready = Semaphore(0, 1)\nready.acquire(tb = 0, data_sync = SyncType.after)",
	"Semaphore.release": "ready = Semaphore(0, 0)\nready.release(tb = 0, data_sync = SyncType.before)\nready.acquire(tb = 1)",

	"ThreadBlockGroup.numtb":           "n = ThreadBlockGroup([4, 5]).numtb()  # 2",
	"ThreadBlockGroup.get_internal_id": "part = ThreadBlockGroup([4, 5]).get_internal_id(5)  # 1",
}
