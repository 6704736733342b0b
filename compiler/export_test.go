package compiler

// Verify is the judge, for tests outside the package.
var Verify = verify
