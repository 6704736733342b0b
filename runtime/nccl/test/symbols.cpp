// symbols LIBRARY HEADER...: every function that one of the nccl.h declares, ncclX and
// pncclX, is found in the library by dlsym; and what the library exports is what
// symbols.txt says and nothing else.
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "check.h"

namespace {

const std::set<std::string> listed = {
#define T(index, name) #name,
#include "symbols.inc"
#undef T
};

// declared finds what a header declares, whatever stands around it: names before a
// parenthesis that are not in a comment.
std::set<std::string> declared(const char *path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  std::string text = std::regex_replace(all.str(), std::regex("/\\*[^]*?\\*/|//[^\n]*"), "");
  text = std::regex_replace(text, std::regex("\"[^\"\n]*\""), "");
  std::set<std::string> names;
  const std::regex name("\\b(p?nccl[A-Z][A-Za-z0-9]*)[ \n]*\\(");
  for (std::sregex_iterator i(text.begin(), text.end(), name), end; i != end; ++i)
    names.insert((*i)[1]);
  return names;
}

std::set<std::string> exported(const std::string &library) {
  std::set<std::string> names;
  FILE *nm = popen(("nm -D --defined-only '" + library + "'").c_str(), "r");
  char address[64], kind[64], name[512];
  while (nm != nullptr && std::fscanf(nm, "%63s %63s %511s", address, kind, name) == 3)
    names.insert(name);
  if (nm != nullptr) pclose(nm);
  return names;
}

void test_header(void *library, const char *path) {
  const std::set<std::string> names = declared(path);
  EXPECT(names.size() >= 80, "%s declares %zu functions", path, names.size());
  for (const std::string &n : names) {
    EXPECT(listed.count(n) == 1, "%s of %s is not in symbols.txt", n.c_str(), path);
    void *at = dlsym(library, n.c_str());
    Dl_info info = {};
    EXPECT(at != nullptr, "%s of %s is not in the library", n.c_str(), path);
    EXPECT(at == nullptr || (dladdr(at, &info) != 0 && info.dli_sname != nullptr), "%s", n.c_str());
  }
  std::printf("symbols: %zu functions of %s\n", names.size(), path);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  for (int i = 2; i < argc; i++) test_header(library, argv[i]);
  const std::set<std::string> names = exported(argv[1]);
  for (const std::string &n : listed) EXPECT(names.count(n) == 1, "%s is not exported", n.c_str());
  for (const std::string &n : names) EXPECT(listed.count(n) == 1, "%s is exported", n.c_str());
  return report("symbols");
}
