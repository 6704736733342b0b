package cuda_test

// allPairsPackets is an allreduce: every rank sends its half of the others' chunk,
// reduces its own, and sends the result.
const allPairsPackets = `
gpu 0 input=2 output=2 scratch=4
tb 0
ppkt memory i[1] x1 -> 1.s[0] x1 packets part 0 of 2
respkt memory i[0] x1, s[0] x1 packets -> i[0] x1, 1.s[1] x1 packets part 0 of 2
upkt s[1] x1 packets -> i[1] x1
tb 1
ppkt memory i[1] x1 -> 1.s[0] x1 packets part 1 of 2
respkt memory i[0] x1, s[0] x1 packets -> i[0] x1, 1.s[1] x1 packets part 1 of 2
gpu 1 input=2 output=2 scratch=4
tb 0
ppkt memory i[0] x1 -> 0.s[0] x1 packets
respkt memory i[1] x1, s[0] x1 packets -> i[1] x1, 0.s[1] x1 packets
upkt s[1] x1 packets -> i[0] x1
`

// readReduceSend is an allreduce on the user's buffers: every rank adds the peer's half to
// its own and writes the sum to both.
const readReduceSend = `
gpu 0 input=2 output=2 scratch=0
channels memory 1
tb 0
signal memory on 0
wait memory on 0
nop
rres memory i[0] x1, 1.i[0] x1 -> i[0] x1, 1.i[0] x1
nop
signal memory on 0
wait memory on 0
gpu 1 input=2 output=2 scratch=0
channels memory 0
tb 0
signal memory on 0
wait memory on 0
nop
rres memory i[1] x1, 0.i[1] x1 -> i[1] x1, 0.i[1] x1
nop
signal memory on 0
wait memory on 0
`
