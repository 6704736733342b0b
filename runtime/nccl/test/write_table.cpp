// write_table FILE: writes the standard table of two ranks, for tests that are scripts.
#include "bundle.h"

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  write_file(argv[1], standard({2}).bytes());
  return 0;
}
