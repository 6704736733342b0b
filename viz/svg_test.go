package viz_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
)

// Boxes of nodes never cover one another, in lanes or in layers.
func TestBoxesStandApart(t *testing.T) {
	box := regexp.MustCompile(`<rect x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)" height="([0-9.]+)" rx="3"/>`)
	for _, name := range []string{"allreduce_allpairs", "alltoall_direct", "allreduce_hierarchical"} {
		for _, p := range stages(t, name, nil)[:4] {
			for _, view := range []viz.View{viz.Lanes, viz.Layers} {
				var b bytes.Buffer
				if err := viz.WriteSVG(&b, p, view); err != nil {
					t.Fatal(err)
				}
				var boxes [][4]float64
				for _, m := range box.FindAllStringSubmatch(b.String(), -1) {
					var r [4]float64
					for i := range r {
						r[i], _ = strconv.ParseFloat(m[i+1], 64) // the pattern has only numbers
					}
					for _, o := range boxes {
						if r[0] < o[0]+o[2] && o[0] < r[0]+r[2] && r[1] < o[1]+o[3] && o[1] < r[1]+r[3] {
							t.Fatalf("%s %s, view %d: boxes %v and %v overlap", name, p.Stage, view, r, o)
						}
					}
					boxes = append(boxes, r)
				}
				if len(boxes) != len(p.Nodes) {
					t.Errorf("%s %s, view %d: %d boxes for %d nodes", name, p.Stage, view, len(boxes), len(p.Nodes))
				}
			}
		}
	}
}

// Names are anybody's: whatever is in them, a drawing is XML.
func TestSVGIsXML(t *testing.T) {
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	p.Name = "a\x00\x01\x1b[31m\t\n\r\x7f\xff\ufffe</title>&\"'<b>\u2028"
	for _, made := range []func(*ir.Program) (*viz.Picture, error){viz.Schedule, viz.Connections} {
		pic, err := made(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, view := range []viz.View{viz.Lanes, viz.Layers} {
			var b bytes.Buffer
			if err := viz.WriteSVG(&b, pic, view); err != nil {
				t.Fatal(err)
			}
			for d := xml.NewDecoder(&b); ; {
				_, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", pic.Stage, err)
				}
			}
		}
	}
}
