package viz_test

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/viz"
)

// No line of a drawing in text is wider than what it was drawn for.
func TestTextFits(t *testing.T) {
	list := stages(t, "allreduce_hierarchical", nil)
	for _, width := range []int{36, 40, 60, 80, 200} {
		for _, p := range list {
			var b bytes.Buffer
			if err := viz.WriteText(&b, p, viz.Terminal{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: a line of %d in %d columns: %s", p.Stage, n, width, line)
				}
			}
		}
	}
}

// A drawing is wide enough for its title.
func TestTitleFits(t *testing.T) {
	p := small(t)[2]
	p.Name = strings.Repeat("long_", 30)
	var b bytes.Buffer
	if err := viz.WriteSVG(&b, p, viz.Lanes); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(` width="([0-9]+)"`).FindStringSubmatch(b.String())
	if m == nil {
		t.Fatal("the drawing has no width")
	}
	// Letters of a bold font with one width, 13 pixels high, take 7.83.
	if width, _ := strconv.Atoi(m[1]); float64(width) < 12+7.83*float64(utf8.RuneCountInString(p.Name+": schedule")) {
		t.Errorf("%d wide", width)
	}
}

// Names of lanes end before boxes begin, however many ranks and thread blocks there
// are.
func TestNamesOfLanesFit(t *testing.T) {
	list := stages(t, "alltoall_direct", map[string]string{"ranks": "12"})
	for _, p := range []*viz.Picture{list[3], list[5]} {
		var b bytes.Buffer
		if err := viz.WriteSVG(&b, p, viz.Lanes); err != nil {
			t.Fatal(err)
		}
		end, begin := 0.0, 1e9
		for _, m := range regexp.MustCompile(`class="name" x="12" y="[0-9.]+">([^<]*)<`).FindAllStringSubmatch(b.String(), -1) {
			end = max(end, 12+6.63*float64(utf8.RuneCountInString(m[1])))
		}
		for _, m := range regexp.MustCompile(`</title><rect x="([0-9.]+)"`).FindAllStringSubmatch(b.String(), -1) {
			x, _ := strconv.ParseFloat(m[1], 64)
			begin = min(begin, x)
		}
		if end == 0 || begin < end {
			t.Errorf("%s: names end at %v, boxes begin at %v", p.Stage, end, begin)
		}
	}
}
