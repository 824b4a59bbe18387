#include "proptests/harness/server.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "proptests/harness/error.h"

namespace weir::harness {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// An environment variable, as it was again at the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_{name} {
    if (const char* was = ::getenv(name)) was_ = was;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { was_ ? ::setenv(name_, was_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> was_;
};

/// TMPDIR is a fresh directory, in which everything that a server leaves behind is seen.
struct Fixture {
  Fixture() {
    fs::create_directory(temporary);
    fs::create_directory(tools);
  }
  ~Fixture() { fs::remove_all(root); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  [[nodiscard]] bool nothing_is_left() const { return fs::is_empty(temporary); }

  /// What construction says is wrong; empty if nothing is. Either way nothing may be left.
  [[nodiscard]] std::string what_is_wrong(const Server::Options& options = {}) const {
    std::string wrong;
    try {
      const Server server{options};
    } catch (const EnvironmentError& error) {
      wrong = error.what();
    }
    BOOST_TEST(nothing_is_left());
    return wrong;
  }

  /// A program of ours to be named by WEIR_REDIS_SERVER.
  [[nodiscard]] std::string program(const std::string& text) const {
    const fs::path file = tools / "program";
    std::ofstream{file} << text;
    fs::permissions(file, fs::perms::owner_all);
    return file.string();
  }

  /// The server that is used otherwise, under a name by which a wrapper can start it.
  [[nodiscard]] std::string real_server() const {
    const fs::path link = tools / "redis-server";
    if (!fs::exists(link))
      fs::create_symlink(fs::read_symlink("/proc/" + std::to_string(Server{}.pid()) + "/exe"), link);
    return link.string();
  }

  fs::path root = [] {
    std::string path = "/tmp/weir-suite-XXXXXX";
    return fs::path{::mkdtemp(path.data())};
  }();
  fs::path temporary = root / "tmp";
  fs::path tools = root / "tools";
  Variable tmpdir{"TMPDIR", temporary.string()};
};

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Polls, because what is awaited is done by other processes.
bool eventually(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// True when all our descendants have ended, those included that lost their parent.
bool no_process_is_left() {
  return eventually([] {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    return errno == ECHILD;
  });
}

BOOST_FIXTURE_TEST_SUITE(server_suite, Fixture)

BOOST_AUTO_TEST_CASE(it_has_no_port_no_persistence_and_a_socket_of_its_own) {
  const Server server;
  Connection connection = server.connect();
  const auto setting = [&](const char* name) { return connection.run({"CONFIG", "GET", name}).elements.at(1).text; };
  BOOST_TEST(setting("port") == "0");
  BOOST_TEST(setting("save").empty());
  BOOST_TEST(setting("appendonly") == "no");
  BOOST_TEST(server.socket_path() == (server.directory() / "redis.sock").string());
  BOOST_TEST(server.directory().parent_path() == temporary);
  BOOST_TEST(::getpgid(server.pid()) == server.pid());
  BOOST_TEST(mentions(connection.run({"INFO", "server"}).text, "redis_version:" + server.version()));
}

BOOST_AUTO_TEST_CASE(no_thread_of_it_sleeps_by_the_clock_that_is_held) {
  const Server server;
  for (const auto& thread : fs::directory_iterator{"/proc/" + std::to_string(server.pid()) + "/task"}) {
    std::ifstream file{thread.path() / "comm"};
    std::string name;
    std::getline(file, name);
    BOOST_TEST(name != "jemalloc_bg_thd");
  }
}

BOOST_AUTO_TEST_CASE(servers_are_apart_from_each_other) {
  Server one;
  Server two;
  one.set_clock(initial_instant + 1h);
  one.connect().run({"SET", "key", "value"});
  BOOST_TEST(show(two.connect().run({"TIME"})) == R"({"1700000000", "0"})");
  BOOST_TEST(two.connect().run({"DBSIZE"}).integer == 0);
}

BOOST_AUTO_TEST_CASE(its_own_further_arguments_reach_it) {
  const Server server{{.arguments = {"--maxmemory", "10mb", "--maxmemory-policy", "noeviction"}}};
  BOOST_TEST(server.connect().run({"CONFIG", "GET", "maxmemory"}).elements.at(1).text == "10485760");
}

BOOST_AUTO_TEST_CASE(it_starts_where_the_path_has_spaces_and_colons) {
  const fs::path odd = temporary / "with a space:and a colon";
  fs::create_directory(odd);
  const Variable tmpdir_is_odd{"TMPDIR", odd.string()};
  const Server server;
  BOOST_TEST(server.directory().parent_path() == odd);
}

BOOST_AUTO_TEST_CASE(it_outlives_the_thread_that_started_it) {
  std::optional<Server> server;
  std::thread{[&] { server.emplace(); }}.join();
  BOOST_TEST(server->connect().run({"PING"}).text == "PONG");
}

BOOST_AUTO_TEST_CASE(cpu_time_is_what_it_has_used) {
  Server server;
  Connection connection = server.connect();
  const auto before = server.cpu_time();
  connection.run({"EVAL", "for i = 1, 1e6 do end", "0"});
  BOOST_TEST((server.cpu_time() > before));
  server.kill();
  BOOST_CHECK_THROW(static_cast<void>(server.cpu_time()), EnvironmentError);
}

BOOST_AUTO_TEST_CASE(nothing_is_left_when_it_is_destroyed) {
  {
    const Server server;
    BOOST_TEST(!nothing_is_left());
  }
  BOOST_TEST(nothing_is_left());
  BOOST_TEST(no_process_is_left());
}

BOOST_DATA_TEST_CASE_F(Fixture, nothing_is_left_when_its_program_is_killed,
                       boost::unit_test::data::make({SIGKILL, SIGTERM, SIGINT, SIGSEGV}), number) {
  // What loses its parent becomes our child, so that we can wait for it.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int started[2];
  BOOST_REQUIRE(::pipe(started) == 0);
  const pid_t program = ::fork();
  if (program == 0) {
    ::signal(number, SIG_DFL);
    Server server;
    server.kill();
    server.start_again();
    if (::write(started[1], "!", 1) == 1) ::pause();
    ::_exit(1);
  }
  ::close(started[1]);
  char mark = 0;
  BOOST_REQUIRE(::read(started[0], &mark, 1) == 1);
  ::close(started[0]);
  BOOST_TEST(!nothing_is_left());
  ::kill(program, number);
  BOOST_TEST(no_process_is_left());
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_CASE(nothing_is_left_when_its_program_is_killed_while_the_server_hangs) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int started[2];
  BOOST_REQUIRE(::pipe(started) == 0);
  const pid_t program = ::fork();
  if (program == 0) {
    const Server server;
    ::kill(server.pid(), SIGSTOP);
    if (::write(started[1], "!", 1) == 1) ::pause();
    ::_exit(1);
  }
  ::close(started[1]);
  char mark = 0;
  BOOST_REQUIRE(::read(started[0], &mark, 1) == 1);
  ::close(started[0]);
  ::kill(program, SIGKILL);
  BOOST_TEST(no_process_is_left());
  BOOST_TEST(nothing_is_left());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(recovery_suite, Fixture)

BOOST_AUTO_TEST_CASE(a_killed_server_starts_again_empty_on_the_same_socket_and_clock) {
  Server server;
  const std::string socket = server.socket_path();
  server.set_clock(initial_instant + 1h);
  server.connect().run({"SET", "key", "value"});
  server.kill();
  BOOST_TEST(!server.running());
  server.start_again();
  BOOST_TEST(server.running());
  BOOST_TEST(server.socket_path() == socket);
  BOOST_TEST(server.connect().run({"DBSIZE"}).integer == 0);
  BOOST_TEST(server.connect().run({"TIME"}).elements.at(0).text == "1700003600");
}

BOOST_AUTO_TEST_CASE(a_server_that_keeps_an_aof_has_its_keys_after_a_kill) {
  const fs::path kept = root / "aof";
  fs::create_directory(kept);
  {
    Server server{{.append_only = kept, .arguments = {"--appendfsync", "always"}}};
    server.connect().run({"SET", "key", "value"});
    server.kill();
    server.start_again();
    BOOST_TEST(server.connect().run({"GET", "key"}).text == "value");
  }
  BOOST_TEST(!fs::is_empty(kept));
}

const Server::Options impatient{.deadline = 300ms, .busy_after = 50ms};

void run_without_an_answer(const Server& server, const std::string& script) {
  Connection connection = server.connect(100ms);
  BOOST_CHECK_THROW(connection.run({"EVAL", script, "1", "written"}), NoReply);
}

BOOST_FIXTURE_TEST_CASE(a_script_that_only_loops_is_ended_and_the_server_goes_on, Fixture) {
  Server server{impatient};
  const int pid = server.pid();
  server.connect().run({"SET", "key", "value"});
  run_without_an_answer(server, "while true do end");
  server.recover_from_busy_script();
  BOOST_TEST(server.pid() == pid);
  BOOST_TEST(server.connect().run({"GET", "key"}).text == "value");
}

BOOST_FIXTURE_TEST_CASE(a_script_that_loops_inside_pcall_is_ended_too, Fixture) {
  Server server{impatient};
  run_without_an_answer(server, "while true do pcall(function() while true do end end) end");
  server.recover_from_busy_script();
  BOOST_TEST(server.connect().run({"PING"}).text == "PONG");
}

BOOST_FIXTURE_TEST_CASE(a_script_that_wrote_before_it_looped_costs_the_server, Fixture) {
  Server server{impatient};
  const int pid = server.pid();
  run_without_an_answer(server, "redis.call('SET', KEYS[1], '1') while true do end");
  server.recover_from_busy_script();
  BOOST_TEST(server.pid() != pid);
  BOOST_TEST(server.connect().run({"DBSIZE"}).integer == 0);
}

BOOST_FIXTURE_TEST_CASE(a_script_that_never_comes_back_to_be_stopped_costs_the_server, Fixture) {
  Server server{impatient};
  const int pid = server.pid();
  run_without_an_answer(server, "return string.find(string.rep('a', 5000), '.-.-.-.-.-b')");
  server.recover_from_busy_script();
  BOOST_TEST(server.pid() != pid);
  BOOST_TEST(server.connect().run({"PING"}).text == "PONG");
}

BOOST_FIXTURE_TEST_CASE(recovering_when_nothing_runs_does_nothing, Fixture) {
  Server server;
  const int pid = server.pid();
  server.recover_from_busy_script();
  BOOST_TEST(server.pid() == pid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(environment_suite, Fixture)

BOOST_AUTO_TEST_CASE(no_server_anywhere_names_the_debian_package) {
  const Variable none{"WEIR_REDIS_SERVER", ""};
  const Variable path{"PATH", tools.string()};
  BOOST_TEST(mentions(what_is_wrong(), "install the Debian package redis-tools"));
}

BOOST_AUTO_TEST_CASE(debians_redis_check_rdb_is_a_server_too) {
  const std::string server = real_server();
  fs::rename(server, tools / "redis-check-rdb");
  const Variable none{"WEIR_REDIS_SERVER", ""};
  const Variable path{"PATH", tools.string()};
  BOOST_TEST(what_is_wrong() == "");
}

BOOST_AUTO_TEST_CASE(a_redis_server_on_the_path_comes_before_redis_check_rdb) {
  BOOST_TEST(!real_server().empty());
  fs::create_symlink("/bin/false", tools / "redis-check-rdb");
  const Variable none{"WEIR_REDIS_SERVER", ""};
  const Variable path{"PATH", tools.string()};
  BOOST_TEST(what_is_wrong() == "");
}

BOOST_AUTO_TEST_CASE(a_binary_that_is_not_there_is_named) {
  const Variable server{"WEIR_REDIS_SERVER", "/nowhere/redis-server"};
  BOOST_TEST(mentions(what_is_wrong(), "WEIR_REDIS_SERVER=/nowhere/redis-server: no such file"));
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_executed_is_named) {
  const std::string file = program("");
  fs::permissions(file, fs::perms::owner_read);
  const Variable server{"WEIR_REDIS_SERVER", file};
  BOOST_TEST(mentions(what_is_wrong(), "WEIR_REDIS_SERVER=" + file + ": is not an executable file"));
}

BOOST_AUTO_TEST_CASE(a_program_that_is_no_redis_is_told_by_what_it_says_of_itself) {
  const Variable server{"WEIR_REDIS_SERVER", program("#!/bin/sh\necho something else\n")};
  BOOST_TEST(mentions(what_is_wrong(), "is not a redis-server: --version answers \"something else\""));
}

BOOST_AUTO_TEST_CASE(a_program_of_no_known_format_is_no_redis) {
  const Variable server{"WEIR_REDIS_SERVER", program("no interpreter, no binary\n")};
  BOOST_TEST(mentions(what_is_wrong(), "Exec format error"));
}

BOOST_AUTO_TEST_CASE(a_version_that_is_too_old_says_which_is_not) {
  const Variable server{
      "WEIR_REDIS_SERVER",
      program("#!/bin/sh\necho 'Redis server v=6.2.16 sha=00000000:0 malloc=libc bits=64 build=0'\n")};
  BOOST_TEST(mentions(what_is_wrong(), "is Redis 6.2.16: 7.0.0 or later is needed"));
}

BOOST_AUTO_TEST_CASE(a_server_that_ends_as_it_starts_shows_its_last_words) {
  const std::string wrong = what_is_wrong({.arguments = {"--no-such-directive", "1"}});
  BOOST_TEST(mentions(wrong, "ended as it started, with exit status 1"));
  BOOST_TEST(mentions(wrong, "no-such-directive"));
}

BOOST_AUTO_TEST_CASE(a_module_that_is_refused_shows_the_servers_last_words) {
  const std::string wrong = what_is_wrong({.arguments = {"--loadmodule", "/etc/hostname"}});
  BOOST_TEST(mentions(wrong, "ended as it started"));
  BOOST_TEST(mentions(wrong, "Can't load module from /etc/hostname"));
}

BOOST_AUTO_TEST_CASE(a_directory_for_temporary_files_that_is_not_there_is_named) {
  const Variable there_is_none{"TMPDIR", "/nowhere/at all"};
  BOOST_TEST(mentions(what_is_wrong(), "TMPDIR=/nowhere/at all: No such file or directory"));
}

BOOST_AUTO_TEST_CASE(a_directory_for_temporary_files_that_cannot_be_written_is_named) {
  const Variable unwritable{"TMPDIR", "/proc"};
  BOOST_TEST(mentions(what_is_wrong(), "TMPDIR=/proc: "));
}

BOOST_AUTO_TEST_CASE(a_path_too_long_for_a_socket_is_named) {
  const fs::path deep = temporary / std::string(100, 'd');
  fs::create_directory(deep);
  const Variable tmpdir_is_deep{"TMPDIR", deep.string()};
  BOOST_CHECK_EXCEPTION(Server{}, EnvironmentError, [](const EnvironmentError& error) {
    return mentions(error.what(), "a unix socket takes 107: set TMPDIR to a directory with a shorter path");
  });
  BOOST_TEST(fs::is_empty(deep));
}

BOOST_AUTO_TEST_CASE(a_disk_without_space_is_named) {
  // A limit of no bytes a file stands in for the full disk: the write fails in the same place.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  const rlimit none{.rlim_cur = 0, .rlim_max = was.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);
  const std::string wrong = what_is_wrong();
  ::setrlimit(RLIMIT_FSIZE, &was);
  BOOST_TEST(mentions(wrong, "cannot write " + temporary.string()));
  BOOST_TEST(mentions(wrong, "set TMPDIR to a directory with a few MiB of space"));
}

BOOST_AUTO_TEST_CASE(a_clock_that_does_not_obey_is_refused) {
  const std::string without = "#!/bin/sh\nunset LD_PRELOAD\nexec " + real_server() + " \"$@\"\n";
  const Variable server{"WEIR_REDIS_SERVER", program(without)};
  BOOST_TEST(
      mentions(what_is_wrong(), "does not obey the clock it is given: set to 1700000000000000 µs, TIME answers"));
}

BOOST_AUTO_TEST_CASE(the_same_wrapper_with_the_preload_is_fine) {
  const Variable server{"WEIR_REDIS_SERVER", program("#!/bin/sh\nexec " + real_server() + " \"$@\"\n")};
  BOOST_TEST(what_is_wrong() == "");
}

BOOST_AUTO_TEST_CASE(a_server_that_keeps_time_by_the_processors_counter_is_refused) {
  // The same server, with the name of its clock changed where it is written in the binary.
  std::ifstream file{real_server(), std::ios::binary};
  std::string binary{std::istreambuf_iterator<char>{file}, {}};
  const std::string name = "POSIX clock_gett";
  const std::size_t at = binary.find(name);
  BOOST_REQUIRE(at != std::string::npos);
  binary.replace(at, name.size(), "X86 TSC @ 2400 t");
  const Variable server{"WEIR_REDIS_SERVER", program(binary)};
  BOOST_TEST(mentions(what_is_wrong(), "keeps time by \"X86 TSC @ 2400 time\", which cannot be held"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
