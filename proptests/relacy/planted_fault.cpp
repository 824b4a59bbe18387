// One search, of the program WEIR_PROGRAM, over a table with a fault in it: exits 0 if it is found.

#include <cstdio>

#include "proptests/relacy/search.h"
#include "proptests/relacy/table_programs.h"

int main() {
  const weir::relacy::Found found = weir::relacy::search_program<weir::relacy::WEIR_PROGRAM>();
  std::printf("%s %llu executions\n", found.fault ? "found after" : "NOT found in",
              static_cast<unsigned long long>(found.executions));
  return found.fault ? 0 : 1;
}
