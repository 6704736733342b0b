package machine

import "testing"

func TestGPUs(t *testing.T) {
	for name, sms := range map[string]int32{"v100": 80, "A100": 108, "h100": 132, "h200": 132, "mi300x": 304} {
		g, err := GPUByName(name)
		if err != nil || g.SMs != sms || g.Source == "" {
			t.Errorf("%s: got %+v, %v, want %d multiprocessors and a source", name, g, err, sms)
		}
	}
	_, err := GPUByName("h1000")
	if want := `no GPU is called "h1000"; known are v100, a100, h100, h200, mi300x`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
