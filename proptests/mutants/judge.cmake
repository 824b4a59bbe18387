# Plants one bug in a copy of the shipped script and asks `weir check` about it.
#
#   cmake -D WEIR=build/release/weir -D PATCH=proptests/mutants/NAME.patch [-D SEED=2] -P proptests/mutants/judge.cmake
#
# The patch's second line says what must come of it: "Must fail: <promise> <kind>", or "Must pass."

cmake_minimum_required(VERSION 3.25)

cmake_path(ABSOLUTE_PATH WEIR)
cmake_path(ABSOLUTE_PATH PATCH)
cmake_path(GET PATCH STEM mutant)
cmake_path(SET lua NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../lua")
if(NOT SEED)
  set(SEED 1)
endif()

file(STRINGS "${PATCH}" header LIMIT_COUNT 2)
list(GET header 0 title)
list(GET header 1 demand)
if(demand MATCHES "^Must fail: ([a-z_]+) ([a-z_]+)$")
  set(promise "${CMAKE_MATCH_1}")
  set(kind "${CMAKE_MATCH_2}")
elseif(NOT demand STREQUAL "Must pass.")
  message(FATAL_ERROR "${PATCH}: line 2 is \"${demand}\"; it must be \"Must fail: <promise> <kind>\" or \"Must pass.\"")
endif()

# A copy that looks like the repository, so that the shipped contract judges it unchanged.
execute_process(COMMAND mktemp -d -t weir-mutant-XXXXXX OUTPUT_VARIABLE copy OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
function(finish)
  file(REMOVE_RECURSE "${copy}")
  if(ARGC GREATER 0)
    message(FATAL_ERROR ${ARGN})
  endif()
endfunction()
file(COPY "${lua}/token_bucket.lua" DESTINATION "${copy}/lua")
file(COPY "${lua}/contracts/token_bucket.lua" DESTINATION "${copy}/lua/contracts")
# The ceiling keeps git from finding a repository around the copy and leaving out what is not in it.
cmake_path(GET copy PARENT_PATH around)
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "GIT_CEILING_DIRECTORIES=${around}" git apply --verbose "${PATCH}"
                WORKING_DIRECTORY "${copy}" RESULT_VARIABLE refused ERROR_VARIABLE said)
if(refused)
  finish("${PATCH} does not fit lua/token_bucket.lua any more:\n${said}\n"
         "Plant the bug by hand in lua/token_bucket.lua, put the patch's first three lines and then the output of\n"
         "`git diff lua/token_bucket.lua` into the patch, and `git checkout lua/token_bucket.lua`.")
endif()

execute_process(COMMAND "${WEIR}" check lua/contracts/token_bucket.lua --seed ${SEED} --json result.json --no-progress
                WORKING_DIRECTORY "${copy}" RESULT_VARIABLE code OUTPUT_VARIABLE card ERROR_VARIABLE card)
message("${title}\n${card}")
if(NOT promise)
  if(NOT code EQUAL 0)
    finish("a script without a planted bug must pass; weir check said ${code}")
  endif()
  finish()
  return()
endif()
if(NOT code EQUAL 1)
  finish("the planted bug must be found (1); weir check said ${code}")
endif()

file(READ "${copy}/result.json" json)
set(found "")
string(JSON lines LENGTH "${json}" limiters 0 promises)
math(EXPR last_line "${lines} - 1")
foreach(line RANGE ${last_line})
  string(JSON name GET "${json}" limiters 0 promises ${line} promise)
  string(JSON count LENGTH "${json}" limiters 0 promises ${line} counterexamples)
  foreach(example RANGE ${count})
    if(example LESS count)
      string(JSON found_kind GET "${json}" limiters 0 promises ${line} counterexamples ${example} kind)
      list(APPEND found "${name} ${found_kind}")
    endif()
  endforeach()
endforeach()
if(NOT "${promise} ${kind}" IN_LIST found)
  finish("${promise} ${kind} must be among what fails; found: ${found}")
endif()
finish()
