package sim

import (
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// Options say under which conditions a program runs. The zero value takes the
// program's slots, its hardest size and the schedule in turns.
type Options struct {
	Regime int32  // chunks in a message (K); 0: that of Bytes
	Bytes  int64  // total size as nccl-tests counts it; 0: the largest of the window
	Slots  int32  // messages that a connection holds; 0: the program's
	Seed   uint64 // draws the schedule; 0: thread blocks move in turns, by rank and number
}

// At is a place in a program: a step of a thread block. Step counts the operations of
// one-sided programs, with those in pipelines after all others of the thread block,
// as ir.OneSided has them.
type At struct {
	Rank     ir.Rank
	TB, Step int32
}

// String is rank 2 tb 0 step 5.
func (a At) String() string { return fmt.Sprintf("rank %d tb %d step %d", a.Rank, a.TB, a.Step) }

// MoveKind says what part of a step a move is.
type MoveKind uint8

// The kinds of moves.
const (
	MoveWhole    MoveKind = iota // a whole step, or operation
	MoveMessage                  // one message of a step
	MoveArrive                   // Direct: a step arrives; others may touch its memory
	MoveTransfer                 // Direct: a step moves its bytes
	MoveEnd                      // Direct: a step, or an exchange, ends without moving bytes
	MovePart                     // one-sided: what could be done of an operation
)

// String is the word for the kind.
func (k MoveKind) String() string {
	return [...]string{"step", "message", "arrive", "transfer", "end", "part"}[k]
}

// Move is one move. Moves count from 0: a machine at n has made moves 0 to n-1.
type Move struct {
	Number  int
	At      At
	Kind    MoveKind
	Message int32     // of MoveMessage: its number within the step
	Ends    bool      // the step has ended with this move
	Writes  []Written // what it changed in memory, by rank, buffer and index
}

// Written is a location that a move wrote and what was there before and after.
type Written struct {
	Loc         ir.Loc
	Before, Now Content
}

// State says what kind of thing a location holds.
type State uint8

// The states of a location.
const (
	Empty State = iota // nothing was ever written there
	Junk               // made of what was empty
	Sum                // a sum of contributions, often of one
	Mixed              // parts of the chunk hold different things (one-sided programs)
)

// Mark says how a location stands to what the collective demands of it.
type Mark uint8

// The marks of a location.
const (
	Free    Mark = iota // nothing is demanded
	Pending             // other than demanded, but something will still be written there
	Final               // as demanded
	Wrong               // other than demanded, and nobody will write it any more
)

// Symbol is the character for the mark: space, '.', '=', '!'.
func (k Mark) Symbol() byte { return " .=!"[k] }

// Term is a contribution and how many times it was added.
type Term struct {
	ir.Contribution
	Times uint64 // saturates far above all that collectives demand
}

// Part is a run of bytes of a chunk.
type Part struct {
	From, To int64
	Content  Content
}

// Content is what a location, or a chunk of a message, holds.
type Content struct {
	State State
	Terms []Term // of a Sum, by rank and index
	Parts []Part // of a Mixed
	Mark  Mark   // Free for what is not in memory
}

// Conn is a connection.
type Conn struct {
	Src, Dst ir.Rank
	Chan     int32
}

// String is 0 -> 1 ch 2.
func (c Conn) String() string { return fmt.Sprintf("%d -> %d ch %d", c.Src, c.Dst, c.Chan) }

// Slot is a message that was sent and not taken.
type Slot struct {
	Conn     Conn
	Number   int32 // of the connection's messages, from 0
	Depth    int32 // messages that the connection holds
	From, To At    // the step that sent it, the step that will take it
	Chunks   []Content
}

// Signal counts what was given and not taken: signals of a channel, or the value of a
// semaphore.
type Signal struct {
	Rank      ir.Rank // that gives, or has the semaphore
	Semaphore bool
	Number    int32   // channel or semaphore of the rank
	Peer      ir.Rank // that takes; None of a semaphore
	Count     int32
}

// WaitKind says what a thread block waits for.
type WaitKind uint8

// The things that thread blocks wait for.
const (
	WaitStep      WaitKind = iota // a step of another thread block of the rank
	WaitMessage                   // a message
	WaitSlot                      // a free slot
	WaitArrival                   // Direct: the step of the other side to arrive
	WaitBytes                     // Direct: what the other side offers or brings
	WaitEnd                       // Direct: the other side to be done with this one's memory
	WaitSignal                    // a signal
	WaitSemaphore                 // a semaphore above 0
	WaitBarrier                   // other thread blocks at a barrier
	WaitPacket                    // a packet that nobody has written yet
)

// String is the word for the kind.
func (k WaitKind) String() string {
	return [...]string{"step", "message", "slot", "arrival", "bytes", "end", "signal", "semaphore", "barrier", "packet"}[k]
}

// Wait is a thread block that can't move, and the first thing that it waits for.
type Wait struct {
	Who  At
	Kind WaitKind
	For  At     // the step that has to happen
	Of   At     // where For's thread block stands; Step None when it has ended
	None bool   // nobody will ever do it; For and Of then mean nothing
	Text string // message 3 of 4 from rank 1 ch 0, to be sent by rank 1 tb 0 step 5 (s)
}

// Status says whether a thread block can move.
type Status uint8

// The states of a thread block.
const (
	Ready Status = iota
	Waiting
	Ended
)

// String is the word for the status.
func (s Status) String() string { return [...]string{"ready", "waiting", "ended"}[s] }

// Position is where a thread block stands.
type Position struct {
	At                At // Step is the number of steps when the thread block has ended
	Steps             int32
	Status            Status
	Message, Messages int32    // of the step: moved already, and in all; 0 of 0 without messages
	Arrived           bool     // Direct: the step has arrived
	Text              string   // the step as ir.Program.StepString has it, "" when ended
	Pos               diag.Pos // in the script or file
	SendPeer          ir.Rank  // of the step, or None
	RecvPeer          ir.Rank
	Wait              *Wait // when waiting
}

// Progress is how far a program is.
type Progress struct {
	Moves            int
	Final, Demanded  int // locations of which something is demanded
	Wrong            int // that nobody will write any more and that are wrong
	Ended, TBs       int
	StepsDone, Steps int
}

// None in a Break stands for any.
const None = ir.None

// Break is a breakpoint: a run stops before the first move of the step. Any of the
// three may be None, which means all.
type Break struct {
	Rank     ir.Rank
	TB, Step int32
}

// Until says where a run ends: at the first of these, and in any case when everything
// has ended or nothing can move.
type Until struct {
	Breaks  []Break
	Changes []ir.Loc                   // a location's content is another after a move than before
	Finals  []ir.Loc                   // a location holds what is demanded of it; not for RunBack
	Moves   int                        // after so many moves, if not 0
	When    func(*Machine, *Move) bool // after a move, if not nil; Writes of the move are not set
}

// Why says why a run ended.
type Why uint8

// The reasons.
const (
	WhyDone    Why = iota // everything has ended; of RunBack: this is the start
	WhyStuck              // nothing can move
	WhyBreak              // at a breakpoint
	WhyChanged            // a location has changed
	WhyFinal              // a location holds what is demanded of it
	WhyMoves              // so many moves were made
	WhyWhen               // When said so
)

// String is the word for the reason.
func (w Why) String() string {
	return [...]string{"done", "stuck", "break", "changed", "final", "moves", "when"}[w]
}

// Stop is where and why a run ended.
type Stop struct {
	Why Why
	At  At     // of WhyBreak: the step that is about to begin
	Loc ir.Loc // of WhyChanged and WhyFinal
}
