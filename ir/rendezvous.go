package ir

// Direct reports whether p is a program of steps whose messages have no slots:
// see docs/direct.md.
func (p *Program) Direct() bool { return p.OneSided == nil && p.Protocol == Direct }

// Exchanges reports whether step s of the thread block and the one after it are an
// exchange of protocol Direct: a plain send directly followed by a plain receive
// from the same rank that depends on nothing. Both arrive when the send does.
func (tb *ThreadBlock) Exchanges(s int32) bool {
	if s < 0 || int(s)+1 >= len(tb.Steps) {
		return false
	}
	send, recv := &tb.Steps[s], &tb.Steps[s+1]
	return send.Kind == Send && recv.Kind == Recv && recv.RecvPeer == send.SendPeer && recv.DepStart == recv.DepEnd
}

// Pulls reports whether a step that receives reads the sender's memory itself,
// since it reduces what it gets. Into the destination of every other one that
// receives the sender writes.
func (k StepKind) Pulls() bool { return k.Receives() && k.Reduces() }
