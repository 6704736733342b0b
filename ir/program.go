package ir

// Dep names a step of another thread block of the same rank.
type Dep struct {
	TB   int32 // index into GPU.TBs
	Step int32 // index into ThreadBlock.Steps
}

// Step is one step of a thread block. Peer and channel stand on the step: that
// a thread block has one send peer, one receive peer and one channel is a rule
// of the XML targets, not of this form.
//
// Src and Dst are local places (Input, Output or FirstScratch); which of them
// are used follows from Kind. Remote is informational: for a step that sends,
// the place where the peer puts it; for a plain receive, the place it came from.
type Step struct {
	Kind             StepKind
	Post             bool // other thread blocks wait for this step ("hasdep")
	Src, Dst, Remote Place
	Count            int32 // chunks; 0 for nop
	SendPeer         Rank  // None unless Kind sends
	RecvPeer         Rank  // None unless Kind receives
	Chan             int32
	DepStart         int32 // the step waits for Program.Deps[DepStart:DepEnd]
	DepEnd           int32
	Pos              PosID
}

// ThreadBlock is a sequence of steps that one thread block runs in order. Peers
// and channel are what an XML declares for it: a thread block may own a
// connection end that it never uses.
type ThreadBlock struct {
	Send, Recv Rank // peers, None without one
	Chan       int32
	Steps      []Step
}

// GPU is the program of one rank. Sizes are physical, in chunks: they follow
// from the collective, not from what the steps touch.
type GPU struct {
	Input, Output, Scratch int32
	TBs                    []ThreadBlock
}

// chunks counts those of all buffers.
func (g *GPU) chunks() int64 { return int64(g.Input) + int64(g.Output) + int64(g.Scratch) }

// Program is a scheduled program, compiled or imported: what runtimes run,
// files hold and the checker judges.
//
// A step starts when the thread block's earlier steps are done, every step in
// its dependencies is done, and its message is there; it holds its input slot
// until its output slot is free. Sizes in [MinBytes, MaxBytes] are safe with
// the Transport; MaxBytes 0 means no limit.
type Program struct {
	*Spec
	Transport Transport
	MinBytes  int64 // total bytes as nccl-tests counts them, inclusive
	MaxBytes  int64 // inclusive; 0 is no limit
	GPUs      []GPU
	Deps      []Dep

	// OneSided replaces the thread blocks' steps, nil in a two-sided program.
	// GPUs then hold sizes alone.
	OneSided *OneSided
}

// DepsOf returns what step s waits for. The slice is shared: don't change it.
func (p *Program) DepsOf(s *Step) []Dep { return p.Deps[s.DepStart:s.DepEnd] }

// Channels is the number of channels: the largest used, plus one. Of a
// one-sided program it is the most channels that one rank has.
func (p *Program) Channels() int32 {
	n := int32(0)
	if p.OneSided != nil {
		for g := range p.OneSided.GPUs {
			n = max(n, int32(len(p.OneSided.GPUs[g].Channels)))
		}
		return n
	}
	for g := range p.GPUs {
		for t := range p.GPUs[g].TBs {
			n = max(n, p.GPUs[g].TBs[t].Chan+1)
			for s := range p.GPUs[g].TBs[t].Steps {
				n = max(n, p.GPUs[g].TBs[t].Steps[s].Chan+1)
			}
		}
	}
	return n
}

// Counts of a program's parts, for reports.
type Counts struct {
	Ranks, TBs, MaxTBs, Channels, Steps, Nops, Deps int
}

// Count counts. MaxTBs is the most thread blocks of one rank; Steps includes
// Nops; Deps counts what steps wait for. Steps of a one-sided program are its
// operations, those in pipelines once each, and Nops those that only let threads
// meet; what waits there stands among them, so Deps is 0.
func (p *Program) Count() Counts {
	c := Counts{Ranks: len(p.GPUs), Channels: int(p.Channels())}
	if p.OneSided != nil {
		p.OneSided.count(&c)
		return c
	}
	for g := range p.GPUs {
		tbs := p.GPUs[g].TBs
		c.TBs += len(tbs)
		c.MaxTBs = max(c.MaxTBs, len(tbs))
		for t := range tbs {
			c.Steps += len(tbs[t].Steps)
			for s := range tbs[t].Steps {
				st := &tbs[t].Steps[s]
				c.Deps += int(st.DepEnd - st.DepStart)
				if st.Kind == Nop {
					c.Nops++
				}
			}
		}
	}
	return c
}

// Event is one step of one tile of a run, for timelines. Times are nanoseconds
// from the start of the run.
type Event struct {
	Rank       Rank
	TB, Step   int32
	Tile       int32
	Begin, End int64
}
