// Package viz turns the forms of a program into pictures and text: pure
// functions from a form to bytes. Nothing here computes a property of a program;
// what it shows it takes from ir.
//
// Forms cross the border inwards, text outwards. viz imports ir and
// internal/diag only, and never prints.
package viz
