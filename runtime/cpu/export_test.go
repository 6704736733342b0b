package cpu

// RaceDetector tells external tests whether the race detector is on.
const RaceDetector = raceDetector
