package cuda

import (
	"strings"
	"unsafe"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// driverLibrary is the driver's own library, wherever the system keeps it.
const driverLibrary = "libcuda.so.1"

// driver is the part of the CUDA driver's own library (libcuda.so.1) that running
// NCCL beside needs: memory, streams, graphs and clocks on the contexts that
// libmscclsh_cuda and NCCL share. Calls act on the context that is current on the
// thread, so callers lock their thread and call use first.
type driver struct {
	contexts map[int32]uintptr // of each device in use

	errorString  func(result int32, text **byte) int32
	initialize   func(flags uint32) int32
	deviceGet    func(device *int32, ordinal int32) int32
	retain       func(context *uintptr, device int32) int32
	setCurrent   func(context uintptr) int32
	memAlloc     func(at *uintptr, bytes uint64) int32
	memFree      func(at uintptr) int32
	toDevice     func(to uintptr, from *byte, bytes uint64) int32
	newStream    func(stream *uintptr, flags uint32) int32
	endStream    func(stream uintptr) int32
	waitStream   func(stream uintptr) int32
	beginCapture func(stream uintptr, mode int32) int32
	endCapture   func(stream uintptr, graph *uintptr) int32
	instantiate  func(exec *uintptr, graph uintptr, flags uint64) int32
	freeGraph    func(graph uintptr) int32
	launchGraph  func(exec, stream uintptr) int32
	freeExec     func(exec uintptr) int32
	newEvent     func(event *uintptr, flags uint32) int32
	record       func(event, stream uintptr) int32
	elapsed      func(milliseconds *float32, begin, end uintptr) int32
	freeEvent    func(event uintptr) int32
}

// openDriver loads the driver and the contexts of the devices.
func openDriver(paths []string, devices []int32) (*driver, error) {
	lib, err := load(paths)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, "machine", "loading the CUDA driver: %v", err)
	}
	d := &driver{contexts: map[int32]uintptr{}}
	for _, f := range []struct {
		fn   any
		name string
	}{
		{&d.errorString, "cuGetErrorString"}, {&d.initialize, "cuInit"}, {&d.deviceGet, "cuDeviceGet"},
		{&d.retain, "cuDevicePrimaryCtxRetain"}, {&d.setCurrent, "cuCtxSetCurrent"},
		{&d.memAlloc, "cuMemAlloc_v2"}, {&d.memFree, "cuMemFree_v2"}, {&d.toDevice, "cuMemcpyHtoD_v2"},
		{&d.newStream, "cuStreamCreate"}, {&d.endStream, "cuStreamDestroy_v2"}, {&d.waitStream, "cuStreamSynchronize"},
		{&d.beginCapture, "cuStreamBeginCapture_v2"}, {&d.endCapture, "cuStreamEndCapture"},
		{&d.instantiate, "cuGraphInstantiateWithFlags"}, {&d.freeGraph, "cuGraphDestroy"},
		{&d.launchGraph, "cuGraphLaunch"}, {&d.freeExec, "cuGraphExecDestroy"},
		{&d.newEvent, "cuEventCreate"}, {&d.record, "cuEventRecord"}, {&d.elapsed, "cuEventElapsedTime"},
		{&d.freeEvent, "cuEventDestroy_v2"},
	} {
		if err := lib.bind(f.fn, f.name); err != nil {
			return nil, err
		}
	}
	if err := d.check(d.initialize(0), "starting the driver"); err != nil {
		return nil, err
	}
	for _, ordinal := range devices {
		var device int32
		var context uintptr
		if err := d.check(d.deviceGet(&device, ordinal), "finding a GPU"); err != nil {
			return nil, err
		}
		// Never released: both libraries hold it until the process ends.
		if err := d.check(d.retain(&context, device), "opening a GPU"); err != nil {
			return nil, err
		}
		d.contexts[ordinal] = context
	}
	return d, nil
}

// use makes a device the thread's current one.
func (d *driver) use(device int32) error {
	return d.check(d.setCurrent(d.contexts[device]), "choosing a GPU")
}

// check makes an error of a result.
func (d *driver) check(result int32, doing string) error {
	if result == 0 {
		return nil
	}
	text := "unknown error"
	var at *byte
	if d.errorString(result, &at) == 0 && at != nil {
		var b strings.Builder
		for ; *at != 0; at = (*byte)(unsafe.Add(unsafe.Pointer(at), 1)) {
			b.WriteByte(*at)
		}
		text = b.String()
	}
	return diag.Errorf(diag.Pos{}, "machine", "CUDA driver: %s: %s", doing, text)
}
