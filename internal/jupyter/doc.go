// Package jupyter is a kernel of Jupyter without a language: the wire protocol
// (messaging 5.3 over ZeroMQ), and the files that make a kernel known to Jupyter.
//
// It owns messages and their signatures (message), the connection file
// (connection), the sockets and who waits for whom (server, queue), what is said
// of each request (requests, execute, history), the streams of a cell that runs
// (stream), and the folder of a kernel spec (spec).
//
// What runs cells is an Engine, which the command hands in; over the border come
// texts and pictures as bytes by media type. The package reads no environment and
// prints nothing but to Options.Log.
//
// jupyter imports zmq4 and nothing of this module. It must not know the shell.
package jupyter
