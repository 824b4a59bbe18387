// The C ABI from Node, by koffi: caller.js LIBWEIR KOFFI. Exits 0 if all is as weir.h says.
'use strict';

const assert = require('node:assert');
const [library, koffiPath] = process.argv.slice(2);
const koffi = require(koffiPath);

koffi.struct('weir_limit', { size: 'size_t', capacity: 'int64_t', refill: 'int64_t', period_us: 'int64_t' });
koffi.struct('weir_limiter_options', {
  size: 'size_t', live_keys: 'int64_t', when_full: 'int32_t', exact_keys: 'int32_t', epoch_us: 'int64_t',
});
koffi.struct('weir_decision', {
  size: 'size_t', outcome: 'int32_t', reserved: 'int32_t', remaining: 'int64_t', retry_after_us: 'int64_t',
  reset_after_us: 'int64_t', wait_us: 'int64_t',
});
koffi.opaque('weir_limiter');

const weir = koffi.load(library);
const abiVersion = weir.func('uint32_t weir_abi_version()');
const lastError = weir.func('const char *weir_last_error()');
const create = weir.func(
  'int weir_limiter_create(const weir_limit *limit, const weir_limiter_options *options, _Out_ weir_limiter **limiter)');
const acquire = weir.func(
  'int32_t weir_limiter_acquire(weir_limiter *limiter, const char *key, size_t key_size, int64_t cost, int64_t now_us,' +
  ' _Inout_ weir_decision *decision)');
const destroy = weir.func('void weir_limiter_destroy(weir_limiter *limiter)');

const sized = (type, fields) => ({ size: koffi.sizeof(type), ...fields });
const blank = () => sized('weir_decision',
  { outcome: 0, reserved: 0, remaining: 0, retry_after_us: 0, reset_after_us: 0, wait_us: 0 });
const [ALLOWED, DENIED, NEVER] = [0, 1, 2];

assert.strictEqual(abiVersion(), 1);

const limit = sized('weir_limit', { capacity: 10, refill: 10, period_us: 1000000 });
const options = sized('weir_limiter_options', { live_keys: 1000, when_full: 0, exact_keys: 1, epoch_us: 0 });
const handle = [null];
assert.strictEqual(create(limit, options, handle), 0, lastError());

const take = (key, cost, nowUs) => {
  const decision = blank();
  const outcome = acquire(handle[0], key, Buffer.byteLength(key), cost, nowUs, decision);
  return { outcome, remaining: decision.remaining, retry: decision.retry_after_us };
};
assert.deepStrictEqual(take('a', 9, 5), { outcome: ALLOWED, remaining: 1, retry: 0 });
assert.deepStrictEqual(take('a', 3, 5), { outcome: DENIED, remaining: 1, retry: 200000 });
assert.deepStrictEqual(take('a', 11, 5), { outcome: NEVER, remaining: 1, retry: -1 });
assert.deepStrictEqual(take('a', 3, 200005), { outcome: ALLOWED, remaining: 0, retry: 0 });
assert.strictEqual(acquire(handle[0], 'a', 1, -1, 5, null), -1);
assert.match(lastError(), /cost is -1/);
destroy(handle[0]);
console.log('node: as weir.h says');
