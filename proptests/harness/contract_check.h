#pragma once

#include <filesystem>
#include <string>

#include "proptests/harness/contract.h"
#include "proptests/harness/lua_value.h"

namespace weir::harness {

/// The text of a contract's file. Throws ContractError: not there, a directory, unreadable, empty, over 1 MiB.
[[nodiscard]] std::string read_contract_source(const std::filesystem::path& file);

/// What the file returned, as a Contract; reads the script it names. Throws ContractError:
/// `file:line: field: what was found; what was expected`.
[[nodiscard]] Contract check_contract(const std::filesystem::path& file, const std::string& source,
                                      const LuaValue& returned);

}  // namespace weir::harness
