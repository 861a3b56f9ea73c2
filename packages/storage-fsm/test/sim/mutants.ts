import type { Mutant } from '../../../../scripts/sim-mutant.ts';

const faults: readonly Omit<Mutant, 'profile'>[] = [
  // The log and its recovery
  {
    name: 'a batch is acknowledged without a sync',
    file: 'storage-fsm/src/log/segments.ts',
    find: '    await segment.file.sync();\n',
    replace: '',
  },
  {
    name: 'a vote is acknowledged without a sync',
    file: 'storage-fsm/src/directory/node-state.ts',
    find: '    await this.#file.sync();\n    this.#sequence',
    replace: '    this.#sequence',
  },
  {
    name: 'a vote is written to one slot only, in the real file',
    file: 'storage-fsm/src/directory/node-state.ts',
    find: '      await this.#writeOlder(state);\n      await this.#writeOlder(state);\n',
    replace: '      await this.#writeOlder(state);\n',
  },
  {
    name: 'entries of a term are stored without the term',
    file: 'storage-fsm/src/log/segment-log.ts',
    find: 'if (supersedes || term !== value.term || vote !== value.vote)',
    replace: 'if (supersedes || vote !== value.vote)',
  },
  {
    name: 'the mark is not lowered before a truncation',
    file: 'storage-fsm/src/log/segment-log.ts',
    find: 'if (supersedes) this.#durable =',
    replace: 'if (supersedes && first < 0) this.#durable =',
  },
  {
    name: 'a segment that is still needed is dropped',
    file: 'storage-fsm/src/log/segments.ts',
    find: 'return view.at(index)?.segment ?? this.#active.header.number;',
    replace: 'return this.#active.header.number + 0 * index * view.lastIndex;',
  },
  {
    name: 'the name of a new segment is not synced',
    file: 'storage-fsm/src/log/segment-file.ts',
    find: '  await disk.syncDirectory(directory);\n',
    replace: '',
  },
  {
    name: 'damage in the middle counts as a torn end',
    file: 'storage-fsm/src/log/log-recovery.ts',
    find: "if (scan.tail === 'damaged')",
    replace: "if (scan.tail === 'damaged' && number < 0)",
  },
  {
    name: 'a log that ends below its mark counts as complete',
    file: 'storage-fsm/src/log/log-recovery.ts',
    find: 'if (view.lastIndex < mark.index)',
    replace: 'if (view.lastIndex < 0)',
  },
  {
    name: 'the newest write overtakes the waiting ones',
    file: 'storage-fsm/src/log/segment-log.ts',
    find: 'return this.#waiting.splice(0, tooMany === -1 ? this.#waiting.length : tooMany);',
    replace: 'return this.#waiting.splice(-1);',
  },
  {
    name: 'a superseded entry is read from the disk',
    file: 'storage-fsm/src/log/log-view.ts',
    find: '    if (index <= this.lastIndex) this.#numbers.length = this.#position(index);\n',
    replace: '',
  },
  // The state
  {
    name: 'the state is flushed without its applied index',
    file: 'storage-fsm/src/state/state-store.ts',
    find: 'batch.put(metaKey, encodeMeta(meta));',
    replace: 'if (meta.appliedIndex % 3 > 0) batch.put(metaKey, encodeMeta(meta));',
  },
  {
    name: 'a flush drops writes made during the flush',
    file: 'storage-fsm/src/state/overlay.ts',
    find: 'if (this.#pending.get(path) === pending) this.#drop(path);',
    replace: 'if (pending.revision > 0) this.#drop(path);',
  },
  {
    name: 'a condition reads the disk instead of the applied state',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: 'applyTransaction(transaction, (path) => this.#records.at(path)?.revision ?? 0);',
    replace:
      'applyTransaction(transaction, (path) => this.#records.store.getSync(nameOf(this.#records.spaces, path))?.revision ?? 0);',
  },
  {
    name: 'a range misses unflushed writes',
    file: 'storage-fsm/src/state/records.ts',
    find: 'return mergeRows(stored, pending);',
    replace: 'return mergeRows(stored, pending.slice(0, 0));',
  },
  // The feature level
  {
    name: 'a restart forgets the feature level',
    file: 'storage-fsm/src/state/records.ts',
    find: '    this.level = storedLevel(store);\n  }\n\n  get store',
    replace: '    this.level = 1;\n  }\n\n  get store',
  },
  {
    name: 'a snapshot does not bring the feature level',
    file: 'storage-fsm/src/state/records.ts',
    find: '    this.level = storedLevel(store);\n  }\n\n  /** Returns the record itself',
    replace: '  }\n\n  /** Returns the record itself',
  },
  {
    name: 'the feature level rises in memory only',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: 'const digest = this.#write(write, this.applied.digest);',
    replace: 'const digest = level < 0 ? this.#write(write, 0n) : undefined;',
  },
  {
    name: 'the feature level rises only if everything before is flushed',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: '    this.#records.level = level;\n',
    replace: '    if (this.#records.pending.bytes < 300) this.#records.level = level;\n',
  },
  {
    name: 'an entry of a later release has an effect',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: 'if (format !== undefined && !allowsFormat(this.#records.level, format))',
    replace: 'if (format === undefined && !allowsFormat(this.#records.level, 0))',
  },
  // Snapshots
  {
    name: 'a snapshot is described one index above its state',
    file: 'storage-fsm/src/snapshot/snapshot-sender.ts',
    find: 'source.describe(appliedIndex)',
    replace: 'source.describe(appliedIndex + 1)',
  },
  // Found only with the extra faults
  {
    name: 'the incarnation of a start is not stored',
    file: 'storage-fsm/src/log/open-log.ts',
    find: 'return { ...now, incarnation: now.incarnation + 1, mark };',
    replace: 'return { ...now, incarnation: Math.max(1, now.incarnation), mark };',
    extra: true,
  },
  {
    name: 'the end of the log is not synced at start',
    file: 'storage-fsm/src/log/log-recovery.ts',
    find: '  await file.sync();\n  segment.size',
    replace: '  segment.size',
    extra: true,
  },
  {
    name: 'the last batch is only synced at start, not written again',
    file: 'storage-fsm/src/log/log-recovery.ts',
    find: '  await file.write(batchStart, bytes.subarray(batchStart, end));\n',
    replace: '  void [bytes, batchStart];\n',
    extra: true,
  },
  {
    name: 'a failed sync of the log is tried again',
    file: 'storage-fsm/src/log/segments.ts',
    find: '    await segment.file.sync();\n',
    replace: '    await segment.file.sync().catch(() => segment.file.sync());\n',
    extra: true,
  },
  {
    name: 'a failed sync of node.state is tried again',
    file: 'storage-fsm/src/directory/node-state.ts',
    find: '    await this.#file.sync();\n    this.#sequence',
    replace: '    await this.#file.sync().catch(() => this.#file.sync());\n    this.#sequence',
    extra: true,
  },
  {
    name: 'the mark is computed before earlier writes of node.state finish',
    file: 'storage-fsm/src/log/segment-log.ts',
    find: 'if (now.index > index || now.commit > commit) void this.#attempt(() => this.#parts.nodeState.raiseMark(() => this.#mark()));',
    replace:
      'if (now.index > index || now.commit > commit) void this.#attempt(() => this.#parts.nodeState.raiseMark(() => now));',
    extra: true,
  },
];

/** Faults of the log and the state machine that the simulator must find. */
export const storageMutants: readonly Mutant[] = faults.map((fault) => ({ ...fault, profile: 'storage' }));
