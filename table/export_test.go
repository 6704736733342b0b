package table

// Reseal makes the digest of a changed file right again, for tests outside.
func Reseal(data []byte) []byte { return reseal(data) }
