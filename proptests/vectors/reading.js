// The token bucket once more, from README.md alone: whole numbers without bounds (BigInt), no dependency, and
// nothing shared with the model, the core or the scripts.
//
//   node reading.js FILE     exits 0 if this reading answers all vectors of FILE as they say, else 1
'use strict';

const fs = require('node:fs');

const gcd = (a, b) => (b === 0n ? a : gcd(b, a % b));
const ceilDiv = (a, b) => (a + b - 1n) / b;
const min = (a, b) => (a < b ? a : b);
const max = (a, b) => (a > b ? a : b);

/** One request: the answer, and the state that is stored after it. All numbers are BigInt. */
function take(stored, limit, now, cost) {
  const divisor = gcd(limit.refill, limit.period_us);
  const refill = limit.refill / divisor;
  const unit = limit.period_us / divisor;
  const full = limit.capacity * unit;

  let debt = 0n;
  let changed = false;
  if (stored !== null) {
    const elapsed = now - stored.as_of_us;
    changed = stored.refill !== refill || stored.period_us !== unit;
    if (changed) {
      const owed = max(0n, stored.debt - stored.refill * elapsed);
      debt = min(2n * full, ceilDiv(owed * unit, stored.period_us));
    } else {
      debt = min(2n * full, max(0n, min(2n * full, stored.debt) - refill * elapsed));
    }
  }

  const wentBack = stored !== null && now < stored.as_of_us;
  let outcome;
  let retry = 0n;
  let writes = false;
  if (cost > limit.capacity) {
    outcome = 'never';
    retry = null;
  } else if (debt + cost * unit <= full) {
    outcome = 'allowed';
    debt += cost * unit;
    writes = cost > 0n;
  } else {
    outcome = 'denied';
    retry = ceilDiv(debt + cost * unit - full, refill);
    writes = cost > 0n && (wentBack || changed);
  }
  const endOfTime = 2n ** 53n;
  return {
    outcome,
    remaining: max(0n, full - debt) / unit,
    retry_after_us: retry,
    reset_after_us: ceilDiv(debt, refill),
    writes,
    alive_until_us: writes ? min(endOfTime, now + ceilDiv(debt + full, refill)) : null,
    state: writes ? { debt, as_of_us: now, refill, period_us: unit } : stored,
  };
}

/** A value of the file with its numbers as BigInt; all of them are exact in a double. */
function exact(value) {
  if (typeof value === 'number') {
    if (!Number.isInteger(value) || Math.abs(value) > 2 ** 53) throw new Error(`${value} is no whole number up to 2^53`);
    return BigInt(value);
  }
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, exact(part)]));
}

/** Every field of `right` that `given` does not have just so, as "name is x; it must be y". */
function differences(given, right, prefix = '') {
  return Object.keys(right).flatMap((name) => {
    const [here, there] = [given[name], right[name]];
    const both = here !== null && there !== null && typeof here === 'object' && typeof there === 'object';
    if (both) return differences(here, there, `${prefix}${name}.`);
    return here === there ? [] : [`${prefix}${name} is ${here}; it must be ${there}`];
  });
}

/** Complaints about one vector, none if it is right; `state` is what is stored before its first step. */
function complaintsAboutVector(vector, state = null) {
  return vector.steps.flatMap((written, index) => {
    const step = exact(written);
    const right = take(state, step.limit, step.now_us, step.cost);
    state = right.state;
    return differences(step, right).map((text) => `"${vector.name}", step ${index + 1}: ${text}`);
  });
}

/** FNV-1a, 64 bits, of the bytes before the line that holds it. */
function checksum(text) {
  const bytes = Buffer.from(text.slice(0, text.lastIndexOf('  "checksum": "')), 'utf8');
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash.toString(16).padStart(16, '0');
}

/** Complaints about the text of a file, none if it is right. */
function complaints(text) {
  const file = JSON.parse(text);
  if (file.format !== 'weir token bucket vectors' || file.version !== 1) {
    return [`this reads "weir token bucket vectors", version 1, not "${file.format}", version ${file.version}`];
  }
  if (file.checksum !== checksum(text)) {
    return [`checksum is ${file.checksum}, but of what is written above it ${checksum(text)}: this is not the file as written`];
  }
  return file.vectors.flatMap((vector) => complaintsAboutVector(vector));
}

module.exports = { complaints, complaintsAboutVector, exact };

if (require.main === module) {
  const text = fs.readFileSync(process.argv[2], 'utf8');
  const found = complaints(text);
  for (const complaint of found.slice(0, 20)) console.error(complaint);
  if (found.length > 0) process.exit(1);
  const { vectors } = JSON.parse(text);
  console.log(`${vectors.length} vectors, ${vectors.reduce((sum, { steps }) => sum + steps.length, 0)} steps: all as they say`);
}
