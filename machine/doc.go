// Package machine holds descriptions of clusters as data: GPUs of one node, the
// links between them, switches, network cards, and the source of every number.
// The files are under data/ and embedded; a new machine is a new file.
//
// Bandwidths are nominal, in GB/s (10^9 bytes a second) and one direction.
// What a runtime reaches of them is the simulator's business.
//
// A name and a number of nodes cross the border inwards, *ir.Topology and
// *diag.Message outwards. machine imports ir and internal/diag only.
package machine
