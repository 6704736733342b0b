package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// BenchPart is what bench measured; --json prints it as it stands here. Times are
// of one launch, in nanoseconds; bandwidths are in GB/s, 10^9 bytes a second, by
// the median.
type BenchPart struct {
	Backend     string     `json:"backend"`
	Devices     []string   `json:"devices"`
	Library     string     `json:"library,omitempty"`
	Graph       bool       `json:"graph"`
	Repetitions int        `json:"repetitions"`
	Warmup      int        `json:"warmup"`
	Verified    bool       `json:"verified"`          // no row has a wrong element
	Against     []string   `json:"against,omitempty"` // names of the opponents' modes
	Opponent    string     `json:"opponent,omitempty"`
	Rows        []BenchRow `json:"rows"`
	GeoMean     []float64  `json:"geometric_mean_ratio,omitempty"` // one an opponent's mode, then of the better of them
}

// BenchRow is one size.
type BenchRow struct {
	Bytes    int64         `json:"bytes"` // really run; see runtime.NewLayout
	Elements int64         `json:"elements"`
	DType    string        `json:"dtype"`
	Op       string        `json:"op"`
	Root     int32         `json:"root"`
	Protocol string        `json:"protocol,omitempty"` // that protocol auto stood for
	Launches int           `json:"launches_per_repetition"`
	MedianNS float64       `json:"median_ns"`
	MinNS    float64       `json:"min_ns"`
	MaxNS    float64       `json:"max_ns"`
	AlgBW    float64       `json:"algbw_gbs"`
	BusBW    float64       `json:"busbw_gbs"`
	Wrong    int64         `json:"wrong_elements"` // over all ranks
	Skipped  string        `json:"skipped,omitempty"`
	Against  []AgainstPart `json:"against,omitempty"` // in the order of BenchPart.Against

	times []float64 // nanoseconds of a launch, of each repetition
}

// AgainstPart is what an opponent needs for the same.
type AgainstPart struct {
	MedianNS float64 `json:"median_ns"` // 0: it can't
	Ratio    float64 `json:"ratio"`     // its median over ours: above 1 we are faster
	Wrong    int64   `json:"wrong_elements,omitempty"`
	Why      string  `json:"why,omitempty"`
}

// best is the smallest of the opponents' times and its ratio; 0 without one.
func (r *BenchRow) best() (ns, ratio float64) {
	for _, a := range r.Against {
		if a.MedianNS > 0 && (ns == 0 || a.MedianNS < ns) {
			ns, ratio = a.MedianNS, a.Ratio
		}
	}
	return ns, ratio
}

// ran reports whether any size was measured.
func (b *BenchPart) ran() bool {
	return slices.ContainsFunc(b.Rows, func(r BenchRow) bool { return r.Skipped == "" })
}

// summarize fills in what is said about all rows.
func (b *BenchPart) summarize() {
	b.Verified = true
	for i := range b.Rows {
		b.Verified = b.Verified && b.Rows[i].Wrong == 0
		for _, a := range b.Rows[i].Against {
			b.Verified = b.Verified && a.Wrong == 0
		}
	}
	if len(b.Against) == 0 {
		return
	}
	b.GeoMean = nil
	for k := range len(b.Against) + 1 {
		sum, n := 0.0, 0
		for i := range b.Rows {
			row, ratio := &b.Rows[i], 0.0
			switch {
			case k == len(b.Against):
				_, ratio = row.best()
			case k < len(row.Against):
				ratio = row.Against[k].Ratio
			}
			if ratio > 0 {
				sum += math.Log(ratio)
				n++
			}
		}
		mean := 0.0
		if n > 0 {
			mean = math.Exp(sum / float64(n))
		}
		b.GeoMean = append(b.GeoMean, mean)
	}
}

// writeHuman prints nccl-tests' columns: sizes in bytes, times in microseconds.
func (b *BenchPart) writeHuman(w io.Writer, st style) {
	head := fmt.Sprintf("on %s", joinDevices(b.Devices))
	if b.Library != "" {
		head += " through " + b.Library
	}
	how := fmt.Sprintf("medians of %s, %d to warm up", plural(int64(b.Repetitions), "repetition"), b.Warmup)
	if b.Graph {
		how += ", each one replay of a CUDA graph"
	}
	lines := []string{head, how}
	if b.Opponent != "" {
		lines = append(lines, "against "+b.Opponent)
	}
	lines = append(lines, st.dim.Render(b.columns()))
	for i := range b.Rows {
		lines = append(lines, b.text(&b.Rows[i]))
	}
	lines = append(lines, b.means()...)
	verdict := st.good.Render("every output is right")
	switch {
	case !b.Verified:
		verdict = st.bad.Render("wrong outputs")
	case !b.ran():
		verdict = "nothing was run"
	}
	part(w, st, "bench", append(lines, verdict)...)
}

// means are the lines below a table with opponents.
func (b *BenchPart) means() []string {
	var lines []string
	for k, name := range b.Against {
		if mean := b.GeoMean[k]; mean > 0 {
			lines = append(lines, fmt.Sprintf("geometric mean of the ratios to %s: %.3f", name, mean))
		}
		why := ""
		for i := range b.Rows {
			if a := b.Rows[i].Against; k < len(a) && a[k].Why != "" {
				why = a[k].Why
			}
		}
		if why != "" {
			lines = append(lines, name+": "+why)
		}
	}
	if n := len(b.Against); n > 1 && b.GeoMean[n] > 0 {
		of := "better of both"
		if n > 2 {
			of = "best of them"
		}
		lines = append(lines, fmt.Sprintf("geometric mean of the ratios to the %s: %.3f", of, b.GeoMean[n]))
	}
	return lines
}

// opponentWidth is the width of an opponent's time.
func opponentWidth(name string) int { return max(12, len(name)+4) }

func (b *BenchPart) columns() string {
	s := fmt.Sprintf("%12s %12s %8s %6s %5s %10s %8s %8s %7s",
		"size(B)", "count", "type", "redop", "root", "time(us)", "algbw", "busbw", "#wrong")
	if b.auto() {
		s += fmt.Sprintf(" %8s", "protocol")
	}
	for _, name := range b.Against {
		s += fmt.Sprintf(" %*s %7s", opponentWidth(name), name+"(us)", "ratio")
	}
	return s
}

func (b *BenchPart) text(r *BenchRow) string {
	s := fmt.Sprintf("%12d %12d %8s %6s %5d ", r.Bytes, r.Elements, r.DType, r.Op, r.Root)
	if r.Skipped != "" {
		return s + r.Skipped
	}
	s += fmt.Sprintf("%10.2f %8.2f %8.2f %7d", r.MedianNS/1e3, r.AlgBW, r.BusBW, r.Wrong)
	if b.auto() {
		s += fmt.Sprintf(" %8s", r.Protocol)
	}
	for k, a := range r.Against {
		width := opponentWidth(b.Against[k])
		if a.MedianNS == 0 {
			s += fmt.Sprintf(" %*s %7s", width, "-", "-")
			continue
		}
		s += fmt.Sprintf(" %*.2f %7.3f", width, a.MedianNS/1e3, a.Ratio)
	}
	return s
}

// auto reports whether each size has a protocol of its own.
func (b *BenchPart) auto() bool { return len(b.Rows) > 0 && b.Rows[0].Protocol != "" }

// writeCSV prints a line a size, after one with the columns' names.
func (b *BenchPart) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"bytes", "elements", "dtype", "op", "root", "launches", "median_us", "min_us", "max_us", "algbw_gbs", "busbw_gbs", "wrong", "skipped"}
	if b.auto() {
		head = append(head, "protocol")
	}
	for _, name := range b.Against {
		head = append(head, name+"_us", name+"_ratio")
	}
	rows := [][]string{head}
	for i := range b.Rows {
		r := &b.Rows[i]
		us := func(ns float64) string { return strconv.FormatFloat(ns/1e3, 'f', 3, 64) }
		num := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
		row := []string{fmt.Sprint(r.Bytes), fmt.Sprint(r.Elements), r.DType, r.Op, fmt.Sprint(r.Root), fmt.Sprint(r.Launches),
			us(r.MedianNS), us(r.MinNS), us(r.MaxNS), num(r.AlgBW), num(r.BusBW), fmt.Sprint(r.Wrong), r.Skipped}
		if b.auto() {
			row = append(row, r.Protocol)
		}
		for k := range b.Against {
			if k < len(r.Against) && r.Against[k].MedianNS > 0 {
				row = append(row, us(r.Against[k].MedianNS), num(r.Against[k].Ratio))
			} else {
				row = append(row, "", "")
			}
		}
		rows = append(rows, row)
	}
	if err := out.WriteAll(rows); err != nil {
		return cannot("writing the table: %w", err)
	}
	return nil
}

// joinDevices is "2 x NVIDIA H200", or the different names.
func joinDevices(names []string) string {
	s := ""
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		if s != "" {
			s += ", "
		}
		if n > 1 {
			s += fmt.Sprintf("%d x ", n)
		}
		s += names[i]
		i += n
	}
	return s
}

// statistics makes figures of the row's times.
func (r *BenchRow) statistics() { r.MedianNS, r.MinNS, r.MaxNS = spread(r.times) }

// spread is the median, the least and the greatest of some times; 0 of none.
func spread(times []float64) (median, least, most float64) {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	if n == 0 {
		return 0, 0, 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]
}

// writeCSV prints the table, and below it those of a file's other modes.
func (r *Report) writeCSV(w io.Writer) error {
	for _, m := range append([]Report{*r}, r.More...) {
		if m.Bench != nil {
			if err := m.Bench.writeCSV(w); err != nil {
				return err
			}
		}
	}
	return nil
}
