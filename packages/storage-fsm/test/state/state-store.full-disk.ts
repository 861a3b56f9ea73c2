/** Writes until the disk refuses, frees space and tries again; prints each outcome. Run it with a soft file size limit and a directory. */
import { spawnSync } from 'node:child_process';
import { StateStore } from '../../src/state/state-store.ts';
import { addToDigest, emptyDigest, recordDigest } from '../../src/store/digest.ts';
import { rejection } from '../store/store.suite.ts';

const store = await StateStore.open(String(process.argv[2]));
let digest = emptyDigest;
let confirmed = 0;
const write = () => {
  const revision = confirmed + 1;
  const record = { path: `k/${revision}`, value: Buffer.alloc(1000, revision), revision };
  const next = addToDigest(digest, recordDigest(record));
  return store
    .write(new Map([[record.path, record]]), { appliedIndex: revision, valuesWritten: revision, digest: next })
    .then(() => {
      confirmed = revision;
      digest = next;
    });
};

let failure: unknown;
while (failure === undefined) failure = await rejection(write());
spawnSync('prlimit', ['--pid', String(process.pid), '--fsize=unlimited:unlimited']);
const again = await rejection(write());
const reading = await rejection((async () => store.getSync('k/1'))());
console.log(JSON.stringify({ confirmed, failure: String(failure), again: String(again), reading: String(reading) }));
