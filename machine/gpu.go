package machine

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed gpus.json
var gpuData []byte

// GPU is what the checker asks of a kind of GPU.
type GPU struct {
	Name   string `json:"name"`
	SMs    int32  `json:"sms"` // multiprocessors; AMD's compute units
	Source string `json:"source"`
}

// GPUs lists the kinds of GPU that are known, in the order of the data file.
func GPUs() ([]GPU, error) {
	d := json.NewDecoder(bytes.NewReader(gpuData))
	d.DisallowUnknownFields()
	var list []GPU
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("reading the table of GPUs: %w", err)
	}
	return list, nil
}

// GPUByName finds a kind of GPU.
func GPUByName(name string) (GPU, error) {
	list, err := GPUs()
	if err != nil {
		return GPU{}, err
	}
	names := make([]string, len(list))
	for i, g := range list {
		if g.Name == strings.ToLower(name) {
			return g, nil
		}
		names[i] = g.Name
	}
	return GPU{}, fmt.Errorf("no GPU is called %q; known are %s", name, strings.Join(names, ", "))
}
