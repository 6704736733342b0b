package compiler

// Verify is the judge, for tests outside the package.
var Verify = verify

// RunLaunches judges a one-sided program.
var RunLaunches = runLaunches
