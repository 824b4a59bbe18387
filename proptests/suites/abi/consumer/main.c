#include <weir/weir.h>

int main(void) {
  return weir_abi_version() == WEIR_ABI_VERSION ? 0 : 1;
}
