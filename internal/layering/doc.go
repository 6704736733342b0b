// Package layering holds the rule of who may import whom, as a test over
// go list. It has no code of its own, and nothing imports it.
package layering
