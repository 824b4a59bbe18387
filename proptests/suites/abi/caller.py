"""The C ABI from Python, by ctypes alone: caller.py LIBWEIR. Exits 0 if all is as weir.h says."""

import ctypes
import sys
import threading

I64, I32, SIZE = ctypes.c_int64, ctypes.c_int32, ctypes.c_size_t


class Sized(ctypes.Structure):
    """A struct that begins with its own size."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class Limit(Sized):
    _fields_ = [("size", SIZE), ("capacity", I64), ("refill", I64), ("period_us", I64)]


class Decision(Sized):
    _fields_ = [("size", SIZE), ("outcome", I32), ("reserved", I32), ("remaining", I64), ("retry_after_us", I64),
                ("reset_after_us", I64), ("wait_us", I64)]


class Options(Sized):
    _fields_ = [("size", SIZE), ("live_keys", I64), ("when_full", I32), ("exact_keys", I32), ("epoch_us", I64)]


ALLOWED, DENIED = 0, 1

weir = ctypes.CDLL(sys.argv[1])
weir.weir_last_error.restype = ctypes.c_char_p
weir.weir_limiter_create.argtypes = [ctypes.POINTER(Limit), ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_void_p)]
weir.weir_limiter_acquire.argtypes = [ctypes.c_void_p, ctypes.c_char_p, SIZE, I64, I64, ctypes.POINTER(Decision)]
weir.weir_limiter_destroy.argtypes = [ctypes.c_void_p]

assert weir.weir_abi_version() == 1

limiter = ctypes.c_void_p()
limit = Limit(capacity=100, refill=1, period_us=1_000_000)
options = Options(live_keys=1000, when_full=0, exact_keys=0, epoch_us=0)
assert weir.weir_limiter_create(limit, options, limiter) == 0, weir.weir_last_error()

decision = Decision()
key = "tenant ü".encode()
assert weir.weir_limiter_acquire(limiter, key, len(key), 99, 5, decision) == ALLOWED
assert (decision.remaining, decision.reset_after_us) == (1, 99_000_000)
assert weir.weir_limiter_acquire(limiter, key, len(key), 2, 5, decision) == DENIED
assert decision.retry_after_us == 1_000_000

# ctypes lets go of the interpreter's lock, so these run at once.
admitted = []


def take_fifty():
    admitted.append(sum(weir.weir_limiter_acquire(limiter, b"shared", 6, 1, 5, None) == ALLOWED for _ in range(50)))


threads = [threading.Thread(target=take_fifty) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert sum(admitted) == 100, admitted

bad = Limit(capacity=0, refill=1, period_us=1)
assert weir.weir_limiter_create(bad, options, ctypes.c_void_p()) == 1
assert b"capacity is 0" in weir.weir_last_error()

weir.weir_limiter_destroy(limiter)
print("python: as weir.h says")
