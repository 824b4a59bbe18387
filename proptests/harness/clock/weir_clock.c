/* The clock of an unmodified redis-server, owned by the harness. One shared object, used twice:
 *
 *  - preloaded, it answers gettimeofday, time and clock_gettime(CLOCK_REALTIME*) from a page that the
 *    harness maps too (clock_page.h), so setting the clock is one store. Every other clock is the
 *    kernel's: the event loop runs on the monotonic one and lives. Raw system calls, no dlsym and no
 *    allocation, because the allocator asks for the time before our constructor has run.
 *  - loaded as a module, it adds WEIR.CLOCK, WEIR.LOOK, WEIR.LOAD and WEIR.DUMP (described in server.h),
 *    so that time steps and looks at the keyspace go down the pipeline with everything else. The loader knows the file
 *    again, so the module and the preloaded clock are one object with one page. */

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "clock_page.h"

#define PUBLIC __attribute__((visibility("default")))

/* ---- System calls ---- */

static long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "weir_clock.c knows the system calls of x86_64 and aarch64 only: add this machine's"
#endif
}

static int kernel_clock_gettime(clockid_t clock, struct timespec* reading) {
  return (int)raw_syscall(SYS_clock_gettime, clock, (long)reading, 0, 0, 0, 0);
}

/* ---- The clock ---- */

static struct weir_clock_page* page; /* null until the constructor has mapped it: then real time */

static const char* value_of(char** environment, const char* name) {
  for (; *environment != NULL; ++environment) {
    const char* entry = *environment;
    const char* letter = name;
    while (*letter != '\0' && *entry == *letter) ++entry, ++letter;
    if (*letter == '\0' && *entry == '=') return entry + 1;
  }
  return NULL;
}

__attribute__((constructor)) static void map_the_page(int argc, char** argv, char** environment) {
  (void)argc, (void)argv;
  const char* path = value_of(environment, WEIR_CLOCK_PAGE_VARIABLE);
  if (path == NULL) return;
  const long file = raw_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
  if (file < 0) return;
  const long address = raw_syscall(SYS_mmap, 0, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  raw_syscall(SYS_close, file, 0, 0, 0, 0, 0);
  /* The kernel's errors are the last 4095 addresses. */
  if ((unsigned long)address < (unsigned long)-4095L) page = (struct weir_clock_page*)address;
}

static int64_t read_clock_us(void) {
  if (page == NULL) {
    struct timespec real;
    kernel_clock_gettime(CLOCK_REALTIME, &real);
    return (int64_t)real.tv_sec * 1000000 + real.tv_nsec / 1000;
  }
  const int64_t creep_us = __atomic_load_n(&page->creep_us, __ATOMIC_SEQ_CST);
  if (creep_us == 0) return __atomic_load_n(&page->now_us, __ATOMIC_SEQ_CST);
  return __atomic_fetch_add(&page->now_us, creep_us, __ATOMIC_SEQ_CST);
}

PUBLIC int gettimeofday(struct timeval* restrict reading, void* restrict zone) {
  (void)zone;
  const int64_t now_us = read_clock_us();
  reading->tv_sec = now_us / 1000000;
  reading->tv_usec = now_us % 1000000;
  return 0;
}

PUBLIC time_t time(time_t* reading) {
  const time_t seconds = read_clock_us() / 1000000;
  if (reading != NULL) *reading = seconds;
  return seconds;
}

PUBLIC int clock_gettime(clockid_t clock, struct timespec* reading) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) {
    return kernel_clock_gettime(clock, reading) == 0 ? 0 : -1;
  }
  const int64_t now_us = read_clock_us();
  reading->tv_sec = now_us / 1000000;
  reading->tv_nsec = now_us % 1000000 * 1000;
  return 0;
}

/* ---- The module: what it needs of Redis's module API (redismodule.h, which Debian does not ship) ---- */

typedef struct Context Context;
typedef struct String String;
typedef struct Key Key;
typedef struct CallReply CallReply;
typedef int (*Handler)(Context* context, String** words, int count);
typedef int (*Listener)(Context* context, int type, const char* event, String* key);

enum { ok = 0, error = 1 };
enum { api_version = 1, open_for_reading = 1, open_for_writing = 2, type_string = 1 };

/* Classes of keyspace events that a write raises. Left out are lazy expiry (1 << 8), eviction (1 << 9),
 * misses (1 << 11), loading (1 << 12) and "new" (1 << 14), which always comes beside one of these. */
enum {
  generic = 1 << 2,
  string = 1 << 3,
  list = 1 << 4,
  set = 1 << 5,
  hash = 1 << 6,
  sorted_set = 1 << 7,
  stream = 1 << 10,
  module = 1 << 13,
  writes_of_every_kind = generic | string | list | set | hash | sorted_set | stream | module,
};

static void (*SetModuleAttribs)(Context*, const char* name, int version, int api);
static int (*CreateCommand)(Context*, const char* name, Handler, const char* flags, int first, int last, int step);
static int (*SubscribeToKeyspaceEvents)(Context*, int types, Listener);
static int (*WrongArity)(Context*);
static int (*StringToLongLong)(const String*, long long*);
static int (*StringCompare)(String*, String*);
static String* (*HoldString)(Context*, String*);
static void (*FreeString)(Context*, String*);
static void* (*Realloc)(void*, size_t);
static Key* (*OpenKey)(Context*, String* name, int mode);
static void (*CloseKey)(Key*);
static int (*KeyType)(Key*);
static int64_t (*GetAbsExpire)(Key*);
static int (*SetAbsExpire)(Key*, int64_t expiry_ms);
static CallReply* (*Call)(Context*, const char* command, const char* format, ...);
static void (*FreeCallReply)(CallReply*);
static size_t (*CallReplyLength)(CallReply*);
static CallReply* (*CallReplyArrayElement)(CallReply*, size_t);
static String* (*CreateStringFromCallReply)(CallReply*);
static const char* (*StringPtrLen)(const String*, size_t*);
static int (*ReplyWithCallReply)(Context*, CallReply*);
static int (*ReplyWithArray)(Context*, long length);
static int (*ReplyWithLongLong)(Context*, long long);
static int (*ReplyWithNull)(Context*);
static int (*ReplyWithString)(Context*, String*);
static int (*ReplyWithError)(Context*, const char*);
static int (*ReplyWithSimpleString)(Context*, const char*);

static const struct {
  const char* name;
  void* function;
} api[] = {
    {"RedisModule_SetModuleAttribs", &SetModuleAttribs},
    {"RedisModule_CreateCommand", &CreateCommand},
    {"RedisModule_SubscribeToKeyspaceEvents", &SubscribeToKeyspaceEvents},
    {"RedisModule_WrongArity", &WrongArity},
    {"RedisModule_StringToLongLong", &StringToLongLong},
    {"RedisModule_StringCompare", &StringCompare},
    {"RedisModule_HoldString", &HoldString},
    {"RedisModule_FreeString", &FreeString},
    {"RedisModule_Realloc", &Realloc},
    {"RedisModule_OpenKey", &OpenKey},
    {"RedisModule_CloseKey", &CloseKey},
    {"RedisModule_KeyType", &KeyType},
    {"RedisModule_GetAbsExpire", &GetAbsExpire},
    {"RedisModule_SetAbsExpire", &SetAbsExpire},
    {"RedisModule_Call", &Call},
    {"RedisModule_FreeCallReply", &FreeCallReply},
    {"RedisModule_CallReplyLength", &CallReplyLength},
    {"RedisModule_CallReplyArrayElement", &CallReplyArrayElement},
    {"RedisModule_CreateStringFromCallReply", &CreateStringFromCallReply},
    {"RedisModule_StringPtrLen", &StringPtrLen},
    {"RedisModule_ReplyWithCallReply", &ReplyWithCallReply},
    {"RedisModule_ReplyWithArray", &ReplyWithArray},
    {"RedisModule_ReplyWithLongLong", &ReplyWithLongLong},
    {"RedisModule_ReplyWithNull", &ReplyWithNull},
    {"RedisModule_ReplyWithString", &ReplyWithString},
    {"RedisModule_ReplyWithError", &ReplyWithError},
    {"RedisModule_ReplyWithSimpleString", &ReplyWithSimpleString},
};

/* ---- WEIR.CLOCK and WEIR.LOOK ---- */

static String** written; /* the key of each write since the last look */
static size_t written_count;
static size_t written_capacity;

static int note_write(Context* context, int type, const char* event, String* key) {
  (void)context, (void)type, (void)event;
  if (written_count == written_capacity) {
    written_capacity = written_capacity == 0 ? 64 : 2 * written_capacity;
    written = Realloc(written, written_capacity * sizeof *written);
  }
  /* Held without a context: this outlives the command that wrote. */
  written[written_count++] = HoldString(NULL, key);
  return ok;
}

static int is_named(String* key, String** names, int count) {
  for (int i = 0; i < count; ++i) {
    if (StringCompare(key, names[i]) == 0) return 1;
  }
  return 0;
}

static long long forget_writes_and_count_strays(String** names, int count) {
  long long strays = 0;
  for (size_t i = 0; i < written_count; ++i) {
    strays += !is_named(written[i], names, count);
    FreeString(NULL, written[i]);
  }
  written_count = 0;
  return strays;
}

static void reply_with_state(Context* context, String* name) {
  Key* key = OpenKey(context, name, open_for_reading);
  if (key == NULL) {
    ReplyWithNull(context);
    ReplyWithLongLong(context, -2);
    return;
  }
  const int type = KeyType(key);
  const int64_t expiry_ms = GetAbsExpire(key);
  CloseKey(key);
  /* Not StringDMA, which would change the encoding of a short string where it stands. */
  CallReply* bytes = Call(context, type == type_string ? "GET" : "DUMP", "s", name);
  if (bytes == NULL) {
    ReplyWithError(context, "ERR WEIR.LOOK could not read the value");
  } else {
    ReplyWithCallReply(context, bytes);
    FreeCallReply(bytes);
  }
  ReplyWithLongLong(context, expiry_ms);
}

static int weir_look(Context* context, String** words, int count) {
  String** names = words + 1;
  const int names_count = count - 1;
  if (names_count < 1) return WrongArity(context);
  ReplyWithArray(context, 2 + 2L * names_count);
  ReplyWithLongLong(context, (long long)written_count);
  ReplyWithLongLong(context, forget_writes_and_count_strays(names, names_count));
  for (int i = 0; i < names_count; ++i) reply_with_state(context, names[i]);
  return ok;
}

static int weir_clock(Context* context, String** words, int count) {
  long long now_us;
  if (count != 2) return WrongArity(context);
  if (StringToLongLong(words[1], &now_us) != ok || now_us < 0) {
    return ReplyWithError(context, "ERR WEIR.CLOCK takes microseconds since 1970, a whole number not below 0");
  }
  if (page == NULL) {
    return ReplyWithError(context, "ERR WEIR.CLOCK has no page: start the server with " WEIR_CLOCK_PAGE_VARIABLE);
  }
  __atomic_store_n(&page->now_us, now_us, __ATOMIC_SEQ_CST);
  return ReplyWithSimpleString(context, "OK");
}

/* ---- WEIR.LOAD and WEIR.DUMP ---- */

static void free_reply(CallReply* reply) {
  if (reply != NULL) FreeCallReply(reply);
}

/* Each key that is alive, handed to `visit`. By SCAN, which deletes those that have expired: KEYS leaves
 * them where they are, to come back when the clock does. One turn of it is as long as the table. */
static long each_key(Context* context, void (*visit)(Context*, String*)) {
  CallReply* scanned = Call(context, "SCAN", "ccc", "0", "COUNT", "1000000");
  if (scanned == NULL) return -1;
  CallReply* names = CallReplyArrayElement(scanned, 1);
  const size_t count = CallReplyLength(names);
  for (size_t i = 0; visit != NULL && i < count; ++i) {
    String* name = CreateStringFromCallReply(CallReplyArrayElement(names, i));
    visit(context, name);
    FreeString(context, name);
  }
  FreeCallReply(scanned);
  return (long)count;
}

static void delete_key(Context* context, String* name) {
  free_reply(Call(context, "DEL", "s", name));
}

static void dump_key(Context* context, String* name) {
  Key* key = OpenKey(context, name, open_for_reading);
  const int is_string = key != NULL && KeyType(key) == type_string;
  if (key != NULL) CloseKey(key);
  ReplyWithString(context, name);
  ReplyWithLongLong(context, is_string);
  reply_with_state(context, name);
}

static int weir_dump(Context* context, String** words, int count) {
  (void)words;
  if (count != 1) return WrongArity(context);
  const long keys = each_key(context, NULL);
  if (keys < 0) return ReplyWithError(context, "ERR WEIR.DUMP could not list the keys");
  ReplyWithArray(context, 4 * keys);
  each_key(context, dump_key);
  forget_writes_and_count_strays(NULL, 0);
  return ok;
}

/* By SET and RESTORE, so that a value is encoded as a client's own would be; the expiry afterwards and
 * through the module API, because RESTORE drops a key in its very last millisecond. */
static int load_key(Context* context, String** words) {
  size_t length;
  long long expiry_ms;
  const int is_string = StringPtrLen(words[1], &length)[0] == '1';
  if (StringToLongLong(words[3], &expiry_ms) != ok) return error;
  CallReply* stored = is_string ? Call(context, "SET", "ss", words[0], words[2])
                                : Call(context, "RESTORE", "scs", words[0], "0", words[2]);
  free_reply(stored);
  Key* key = OpenKey(context, words[0], open_for_reading | open_for_writing);
  if (stored == NULL || key == NULL || KeyType(key) == 0) {
    if (key != NULL) CloseKey(key);
    return error;
  }
  if (expiry_ms >= 0) SetAbsExpire(key, expiry_ms);
  CloseKey(key);
  return ok;
}

static int weir_load(Context* context, String** words, int count) {
  if (count < 2 || (count - 2) % 4 != 0) return WrongArity(context);
  each_key(context, delete_key);
  for (int i = 2; i < count; i += 4) {
    if (load_key(context, words + i) != ok) return ReplyWithError(context, "ERR WEIR.LOAD could not store a value");
  }
  forget_writes_and_count_strays(NULL, 0);
  return weir_clock(context, words, 2);
}

PUBLIC int RedisModule_OnLoad(Context* context) {
  /* The first word of the context that a module is loaded with is the way to every other function. */
  int (*get_api)(const char*, void*) = *(int (**)(const char*, void*))context;
  for (size_t i = 0; i < sizeof api / sizeof *api; ++i) {
    if (get_api(api[i].name, api[i].function) != ok) return error;
  }
  SetModuleAttribs(context, "weir", 1, api_version);
  if (CreateCommand(context, "weir.clock", weir_clock, "fast deny-script", 0, 0, 0) != ok) return error;
  if (CreateCommand(context, "weir.look", weir_look, "readonly deny-script", 1, -1, 1) != ok) return error;
  if (CreateCommand(context, "weir.load", weir_load, "write deny-script", 0, 0, 0) != ok) return error;
  if (CreateCommand(context, "weir.dump", weir_dump, "readonly deny-script", 0, 0, 0) != ok) return error;
  return SubscribeToKeyspaceEvents(context, writes_of_every_kind, note_write);
}
