// Package table holds tables of algorithms: which compiled program serves which calls
// of NCCL's interface. It owns the file that libmscclsh_nccl maps
// (runtime/nccl/include/mscclsh_table.h), the rule by which an entry is chosen, the
// words for why others are not, and what can be wrong with a table as a whole.
//
// Entries come in as compiled programs with their ranges (Recipe) and go out as bytes
// (Table.Encode); Decode reads and validates them. How a script becomes a program is the
// caller's business: nothing here knows the language, the compiler or the checker.
package table
