// Corrupts each field of each step of FILE, one at a time: reading.js must complain every time.
//
//   node corrupted.js FILE     exits 0 if it does
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const { complaints, complaintsAboutVector, exact } = require('./reading.js');

const text = fs.readFileSync(process.argv[2], 'utf8');
const { vectors } = JSON.parse(text);
assert.deepStrictEqual(complaints(text), []);

/** Something else of the same kind. */
function other(value) {
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return value === 'allowed' ? 'denied' : 'allowed';
  return value === null ? 0 : value === 0 ? 1 : value - 1;
}

/** Calls `visit(path)` with each field of `value` that holds no others. */
function eachField(value, visit, path = []) {
  for (const [name, part] of Object.entries(value)) {
    if (part !== null && typeof part === 'object') eachField(part, visit, [...path, name]);
    else visit([...path, name]);
  }
}

/** Puts `value` there and returns what was there. */
function put(object, path, value) {
  const holder = path.slice(0, -1).reduce((at, name) => at[name], object);
  const before = holder[path.at(-1)];
  holder[path.at(-1)] = value;
  return before;
}

// What a step answers is seen by computing it; a file has its checksum for the rest: what is asked.
const asked = ['limit', 'now_us', 'cost'];
let answers = 0;
let questions = 0;
for (const vector of vectors) {
  for (const [index, step] of vector.steps.entries()) {
    eachField(step, (path) => {
      if (asked.includes(path[0])) return;
      const before = put(step, path, other(path.reduce((at, name) => at[name], step)));
      const stored = index === 0 ? null : exact(vector.steps[index - 1].state);
      const found = complaintsAboutVector({ ...vector, steps: [step] }, stored);
      put(step, path, before);
      assert.notStrictEqual(found.length, 0, `"${vector.name}", step ${index + 1}: ${path.join('.')} may be anything`);
      answers += 1;
    });
  }
}

const lines = text.split('\n');
for (const [index, line] of lines.entries()) {
  if (!line.startsWith('      {') || index % 97 !== 0) continue;
  for (const name of ['capacity', 'refill', 'period_us', 'now_us', 'cost']) {
    const changed = line.replace(new RegExp(`"${name}":(\\d+)`), (_, value) => `"${name}":${other(Number(value))}`);
    assert.notStrictEqual(changed, line);
    const found = complaints([...lines.slice(0, index), changed, ...lines.slice(index + 1)].join('\n'));
    assert.notStrictEqual(found.length, 0, `line ${index + 1}: ${name} may be anything`);
    questions += 1;
  }
}

assert(answers > 1000 && questions > 20);
console.log(`${answers} corrupted answers and ${questions} corrupted questions: each was seen`);
