package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/internal/randprog"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/mscclxml"
)

// readings are those by which a target's files are read beside the plain one.
var readings = map[ir.Target]mscclxml.Reading{ir.TargetMSCCL: mscclxml.MSCCL, ir.TargetExecutor: mscclxml.Executor, ir.TargetRCCL: mscclxml.RCCL}

// Whatever is compiled for a target and written for it is taken by that runtime's
// own rules, and comes back as the program that it was.
func TestRandomProgramsAsXML(t *testing.T) {
	written := map[ir.Target]int{}
	for seed := range uint64(400) {
		if err := oneFile(seed, written); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for target := range ir.TargetNative { // the last one, which has no XML
		if written[target] == 0 {
			t.Errorf("no file for %s", target)
		}
	}
}

var (
	forwards = regexp.MustCompile(`^ +[0-9]+ (rcs|rrc|rrcs) `)
	remote   = regexp.MustCompile(` at [ios]\[[0-9]+\]`)
)

func oneFile(seed uint64, written map[ir.Target]int) error {
	rng := rand.New(rand.NewPCG(seed, 0x786d6c)) // any constant: a stream of its own
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := randprog.Generate(rng, randprog.Options{})
	if err != nil {
		return err
	}
	target := ir.Target(seed % uint64(ir.TargetNative))
	res, err := compiler.Compile(ctx, d, compiler.Options{Target: target})
	if err != nil {
		return fmt.Errorf("compiling: %w", err)
	}
	var file bytes.Buffer
	if err := mscclxml.Write(&file, res.Program, target); err != nil {
		return nil // a refusal: other tests tell whether it is right
	}
	written[target]++
	if bytes.Contains(file.Bytes(), []byte(` coll="custom" `)) {
		return nil // what it was is lost: msccl knows no other word
	}
	for _, r := range []mscclxml.Reading{mscclxml.Plain, readings[target]} {
		im, err := mscclxml.Read(bytes.NewReader(file.Bytes()), mscclxml.ReadOptions{File: "random.xml", Runtime: r})
		if err != nil {
			return fmt.Errorf("read as %s: %w in\n%s", r, err, file.String())
		}
		if len(im.Programs) != 1 {
			return fmt.Errorf("read as %s: got %d programs", r, len(im.Programs))
		}
		var again bytes.Buffer
		if err := mscclxml.Write(&again, im.Programs[0], target); err != nil {
			return fmt.Errorf("read as %s, written again: %w", r, err)
		}
		if diff := cmp.Diff(file.String(), again.String()); diff != "" {
			return fmt.Errorf("read as %s, written again (-want +got):\n%s", r, diff)
		}
		want, err := stepsOf(res.Program)
		if err != nil {
			return err
		}
		got, err := stepsOf(im.Programs[0])
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("read as %s (-want +got):\n%s", r, diff)
		}
	}
	return nil
}

// stepsOf is the text of what a program's ranks do, from the connections on,
// without the positions in scripts and without the peer's place of steps that have
// two of their own: files hold neither.
func stepsOf(p *ir.Program) (string, error) {
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		return "", err
	}
	_, body, ok := strings.Cut(b.String(), "\ntransport ")
	if !ok {
		return "", fmt.Errorf("no transport in\n%s", b.String())
	}
	var out []string
	for line := range strings.Lines(body) {
		line, _, _ = strings.Cut(line, " ; ")
		if forwards.MatchString(line) {
			line = remote.ReplaceAllString(line, "")
		}
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return strings.Join(out, "\n"), nil
}
