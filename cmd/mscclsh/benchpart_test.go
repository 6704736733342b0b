package main

import (
	"math"
	"strings"
	"testing"
)

// Two sizes against two modes: the ratios 2 and 8 have the geometric mean 4; the
// better of both modes is 2 at one size and, where one is missing, the other's 8.
func printedTable() *BenchPart {
	return &BenchPart{Backend: backendCUDA, Devices: []string{"NVIDIA H200", "NVIDIA H200"}, Library: "lib", Graph: true,
		Repetitions: 20, Warmup: 5, Opponent: "NCCL 2.28.9, NVLS off", Against: []string{"NCCL", "NCCL windows"},
		Rows: []BenchRow{
			{Bytes: 1024, Elements: 256, DType: "fp32", Op: "sum", Root: -1, Launches: 200, MedianNS: 2000, MinNS: 1500, MaxNS: 2500,
				AlgBW: 0.512, BusBW: 0.512, Against: []AgainstPart{{MedianNS: 4000, Ratio: 2}, {MedianNS: 6000, Ratio: 3}}},
			{Bytes: 2048, Elements: 512, DType: "fp32", Op: "sum", Root: -1, Launches: 200, MedianNS: 1000, MinNS: 1000, MaxNS: 1000,
				AlgBW: 2.048, BusBW: 2.048, Against: []AgainstPart{{MedianNS: 8000, Ratio: 8}, {Why: "no windows"}}},
			{Bytes: 4096, Elements: 1024, DType: "fp32", Op: "sum", Root: -1, Skipped: "outside of the program's sizes"},
		}}
}

func TestSummarize(t *testing.T) {
	b := printedTable()
	b.summarize()
	if !b.Verified {
		t.Error("no element is wrong, but it isn't verified")
	}
	for i, want := range []float64{4, 3, 4} {
		if math.Abs(b.GeoMean[i]-want) > 1e-12 {
			t.Errorf("mean %d: got %g, want %g", i, b.GeoMean[i], want)
		}
	}
	b.Rows[1].Wrong = 1
	if b.summarize(); b.Verified {
		t.Error("an element is wrong, but it is verified")
	}
}

func TestBenchText(t *testing.T) {
	b := printedTable()
	b.summarize()
	var out strings.Builder
	b.writeHuman(&out, newStyle(&out))
	for _, want := range []string{
		"  bench     on 2 x NVIDIA H200 through lib\n",
		"medians of 20 repetitions, 5 to warm up, each one replay of a CUDA graph\n",
		"against NCCL 2.28.9, NVLS off\n",
		"        1024          256     fp32    sum    -1       2.00     0.51     0.51       0         4.00   2.000             6.00   3.000\n",
		"        2048          512     fp32    sum    -1       1.00     2.05     2.05       0         8.00   8.000                -       -\n",
		"        4096         1024     fp32    sum    -1 outside of the program's sizes\n",
		"geometric mean of the ratios to NCCL: 4.000\n",
		"geometric mean of the ratios to NCCL windows: 3.000\n",
		"geometric mean of the ratios to the better of both: 4.000\n",
		"NCCL windows: no windows\n",
		"every output is right\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// A verdict on outputs takes outputs.
func TestBenchTextOfNothing(t *testing.T) {
	b := printedTable()
	b.Rows = b.Rows[2:]
	b.summarize()
	var out strings.Builder
	b.writeHuman(&out, newStyle(&out))
	if !strings.HasSuffix(out.String(), "            nothing was run\n") || strings.Contains(out.String(), "every output") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestBenchCSV(t *testing.T) {
	r := &Report{Bench: printedTable()}
	var out strings.Builder
	if err := r.writeCSV(&out); err != nil {
		t.Fatal(err)
	}
	want := `bytes,elements,dtype,op,root,launches,median_us,min_us,max_us,algbw_gbs,busbw_gbs,wrong,skipped,NCCL_us,NCCL_ratio,NCCL windows_us,NCCL windows_ratio
1024,256,fp32,sum,-1,200,2.000,1.500,2.500,0.512,0.512,0,,4.000,2.000,6.000,3.000
2048,512,fp32,sum,-1,200,1.000,1.000,1.000,2.048,2.048,0,,8.000,8.000,,
4096,1024,fp32,sum,-1,0,0.000,0.000,0.000,0.000,0.000,0,outside of the program's sizes,,,,
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		times               []float64
		median, least, most float64
	}{{nil, 0, 0, 0}, {[]float64{7}, 7, 7, 7}, {[]float64{9, 1, 4}, 4, 1, 9}, {[]float64{8, 2, 4, 6}, 5, 2, 8}} {
		if a, b, d := spread(c.times); a != c.median || b != c.least || d != c.most {
			t.Errorf("%v: got %g, %g, %g, want %g, %g, %g", c.times, a, b, d, c.median, c.least, c.most)
		}
	}
}

func TestJoinDevices(t *testing.T) {
	if got, want := joinDevices([]string{"A", "A", "B", "A"}), "2 x A, B, A"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
