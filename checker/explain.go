package checker

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

//go:embed examples/*.txt
var examples embed.FS

// Explanation describes a class of findings to users.
type Explanation struct {
	Code     string
	Severity diag.Severity // the gravest a finding of the class can be
	Title    string        // a few words
	Text     string        // what it means and why it matters
	Fix      string        // what usually helps
	Example  string        // a program, in its text form, with such a finding
}

// smallGPU is what the example of CodeFit doesn't fit.
var smallGPU = Device{Name: "a GPU with 2 SMs", SMs: 2}

// Judge is what is found in the example; what a GPU can't run, if that is what the
// explanation is about, is asked of a small one.
func (e Explanation) Judge(ctx context.Context) (diag.List, error) {
	p, err := ir.ParseProgram(strings.NewReader(e.Example), e.Code+".txt")
	if err != nil {
		return nil, fmt.Errorf("reading the example of %s: %w", e.Code, err)
	}
	rep, err := Check(ctx, p, Options{})
	if err != nil {
		return nil, fmt.Errorf("judging the example of %s: %w", e.Code, err)
	}
	list := rep.Messages
	if e.Code == CodeFit {
		list = append(list, Fit(p, smallGPU, 1)...)
	}
	return list, nil
}

// Explanations lists every class of findings, in the order of Codes' list.
func Explanations() []Explanation {
	list := make([]Explanation, len(explanations))
	for i, e := range explanations {
		if text, err := examples.ReadFile("examples/" + e.Code + ".txt"); err == nil {
			e.Example = string(text)
		}
		list[i] = e
	}
	return list
}

// Explain finds the explanation of a code.
func Explain(code string) (Explanation, bool) {
	for _, e := range Explanations() {
		if e.Code == strings.TrimSpace(code) {
			return e, true
		}
	}
	return Explanation{}, false
}

var explanations = []Explanation{
	{Code: CodeProgram, Severity: diag.Error, Title: "the program contradicts itself",
		Text: "Sizes, ranks or the collective don't fit one another, so there is no memory on which the program could be judged. Buffers are as long as the collective says, whatever the steps touch.",
		Fix:  "Give every rank the input and output chunks of the collective; docs/ir.md has the table."},
	{Code: CodeStep, Severity: diag.Error, Title: "a step that can't be run",
		Text: "The fields of a step don't fit its kind: a send without a peer, a step whose peer is its own rank, a peer that the thread block doesn't have.",
		Fix:  "Name the peer that the kind of step needs, and no other."},
	{Code: CodeBounds, Severity: diag.Error, Title: "a step outside of its buffer",
		Text: "Offset and count together reach past the end. Runtimes check the offset alone, so such a step reads or overwrites a neighbor's memory without a word.",
		Fix:  "Lower the count or the offset; scratch can be declared larger."},
	{Code: CodeOverlap, Severity: diag.Error, Title: "a local step onto itself, shifted",
		Text: "Source and destination share some chunks but not all. Threads work on all chunks at once, so a chunk may be overwritten before it is read.",
		Fix:  "Go through scratch, or split the step so that its parts don't overlap."},
	{Code: CodeDependency, Severity: diag.Error, Title: "a wait for what never comes",
		Text: "A step waits for a step that is not there, comes later in its own thread block, or doesn't post that it is done.",
		Fix:  "Set hasdep (post) on the step that is waited for, and count nops when numbering steps."},
	{Code: CodeConnectionOwner, Severity: diag.Error, Title: "two thread blocks on one end of a connection",
		Text: "A connection is one queue from a rank to a rank on a channel. Two thread blocks at one end count its messages together without knowing of each other: messages are lost or mixed up.",
		Fix:  "Give one of the thread blocks another channel, or put the steps into one thread block."},
	{Code: CodeCountMismatch, Severity: diag.Error, Title: "the ends of a connection disagree",
		Text: "Both ends must send and receive steps of the same counts in the same order. A step of two chunks against two of one may even work at large sizes, where a message holds one chunk, and mix up data at small ones.",
		Fix:  "Cut the steps alike at both ends."},
	{Code: CodeNoLink, Severity: diag.Error, Title: "a connection that the topology lacks",
		Text: "A step sends to a rank to which the program's topology has no link.",
		Fix:  "Go by way of a rank that is linked to both, or use the topology of the machine that is meant."},
	{Code: CodeNoMemory, Severity: diag.Error, Title: "a message that stands in no memory",
		Text: "With protocol Direct there are no slots: a message goes from memory to memory. A step that reduces reads what it gets from the sender's memory, and rrs keeps its sum in registers and writes it straight to its receiver, so between the two there is no place where the message could be.",
		Fix:  "Store the sum (rrcs in place of rrs), receive it into scratch before it is reduced (r and re), or use a protocol with slots."},
	{Code: CodeDeadlock, Severity: diag.Error, Title: "thread blocks that wait for one another for ever",
		Text: "With the slots that a connection has, the program comes to a point at which every thread block waits: for a message, for a free slot, or for a step of another. With protocol Direct there are no slots, and a send waits for its receiver. Else a send waits when its connection is full, so a program can hang at large sizes, where a step is more messages, and run at small ones.",
		Fix:  "Receive before the slots are full, use separate thread blocks for the two directions, cut counts, or limit the sizes; the message says from which depth and up to which size it runs."},
	{Code: CodeWrongResult, Severity: diag.Error, Title: "an output is not what the collective demands",
		Text: "After the program has run, an output holds other contributions than it should: too few, too many, of another rank or place, or junk that nobody wrote.",
		Fix:  "Follow the output back through the steps that wrote it; the message names the first that differs."},
	{Code: CodeInputClobbered, Severity: diag.Error, Title: "an input is overwritten out of place",
		Text: "Out of place, the caller's send buffer must be as it was afterwards. In place it may be overwritten.",
		Fix:  "Work in the output or in scratch, or declare the program in place."},
	{Code: CodeRace, Severity: diag.Error, Title: "two steps touch the same memory in no order",
		Text: "At least one of them writes, and neither program order nor a wait nor a message says which comes first: the result depends on timing. With LL and LL128 a message orders only the chunk that it brings, as each thread sends and takes its own. That a queue happens to be full does not count, since queues are deeper on some machines. A race whose value can't reach an output is a warning.",
		Fix:  "Let one of the steps wait for the other (depid, deps and hasdep in XML)."},
	{Code: CodeRaceAcross, Severity: diag.Warning, Title: "a race of one launch with the next",
		Text: "A rank may start its next launch while others are still in this one. Memory of another rank that is written early in a launch can still be read there by the launch before, unless a signal or a barrier says that it is not. The next launch may be of any other size that the program is for: places in memory move with the size, so that a small message's last chunk lies where the first of a large one does. Some programs are right as long as all launches have one size; the message then names two with which they are not. With packets, plain data of one size may also lie where packets of another are awaited, and pass for them. It is an error if a launch can end before what others write to its outputs is there.",
		Fix:  "Tell peers at the start that their memory may be written, or use double scratch and a handshake for what two halves don't cover. A program that is only called with one size says so by its window (min_message_size and max_message_size, or --min-bytes and --max-bytes)."},
	{Code: CodeOrderDiffers, Severity: diag.Info, Title: "ranks add in different orders",
		Text: "Floating-point sums depend on the order of additions in their last bits, so ranks can end up with different results of one allreduce.",
		Fix:  "Compile with --canonical-order, or sum at one rank and hand the result out."},
	{Code: CodeLeftover, Severity: diag.Warning, Title: "signals that are left for the next launch",
		Text: "A channel or a semaphore has been signaled more often than waited for. The next launch finds the signal and does not wait where it should. Or a semaphore has been acquired more often than released, so that one of the next launches waits for ever.",
		Fix:  "Wait as often as is signaled on every channel, and release as often as is acquired."},
	{Code: CodeUndecided, Severity: diag.Warning, Title: "not decided",
		Text: "What happens depends on the order of events in more ways than the checker follows; it says so rather than guess.",
		Fix:  "Let one thread block at a time take from a semaphore, so that one order decides."},
	{Code: CodeFit, Severity: diag.Error, Title: "more thread blocks than the GPU runs at once",
		Text: "Thread blocks wait for one another by spinning. One that the GPU has no room for is never started, and the others wait for it for ever. It is looked for only when a GPU is named.",
		Fix:  "Use fewer instances or channels, or more GPUs."},
	{Code: CodeTooLarge, Severity: diag.Error, Title: "too large to be judged",
		Text: "The program has more chunks, steps or parts than the checker can hold in bounded memory.",
		Fix:  "Check it with fewer ranks, instances or chunks; what holds is usually the same."},
}
