// Test builds of other releases: copies of the packages in a temporary folder with a few lines changed. The product has no switch for this.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Change, changedCopy } from '../../../changed-copy.ts';

/** The feature level of the next release. Far above the present one, so that levels in between are skipped. */
export const nextLevel = 900;
/** First byte of the transactions that the next release writes once its level is raised. */
const nextFormat = 0xe0;

const levels: Change = {
  file: 'storage-fsm/src/level/feature-levels.ts',
  find: '{ initial: 1 }',
  replace: `{ initial: 1, nextRelease: ${nextLevel} }`,
};

/** The additions of the next release: a frame, a record field, a transaction and an operation. */
const additions: readonly Change[] = [
  levels,
  // A transaction: from its level on, this format replaces the one of ordinary transactions.
  {
    file: 'storage-fsm/src/level/feature-levels.ts',
    find: '  [3, featureLevels.initial],',
    replace: `  [${nextFormat}, ${nextLevel}],\n  [3, featureLevels.initial],`,
  },
  {
    file: 'storage-fsm/src/store/codec.ts',
    find: '  if (version !== formatVersion)',
    replace: `  if (version !== formatVersion && version !== ${nextFormat})`,
  },
  {
    file: 'storage-fsm/src/state/local-replica.ts',
    find: '    const data = encodeCommand(command);\n',
    replace:
      '    const data = encodeCommand(command);\n' +
      `    if (data[0] === 1 && this.#parts.machine.featureLevel >= ${nextLevel}) data[0] = ${nextFormat};\n`,
  },
  // A frame: a further version, in which heartbeats and votes have one more field.
  { file: 'raft-core/src/wire/version.ts', find: 'newest: 2 };', replace: 'newest: 3 };' },
  {
    file: 'raft-core/src/wire/message.ts',
    find: '  writeFields(writer, message);\n',
    replace: "  writeFields(writer, message);\n  if (message.type === 'Heartbeat' && version >= 3) writer.u32(77);\n",
  },
  {
    file: 'raft-core/src/wire/message.ts',
    find: '  const message = readFields(reader, type, { from, to, term, clusterId: reader.ascii(), session });\n',
    replace:
      '  const message = readFields(reader, type, { from, to, term, clusterId: reader.ascii(), session });\n' +
      "  if (type === 'Heartbeat' && (frame[0] ?? 0) >= 3 && reader.u32() !== 77) throw new CodecError('a field of the next release is wrong');\n",
  },
  // A record field: earlier releases keep it.
  {
    file: 'transit-engine/src/keys/key-record.ts',
    find: '  Buffer.from(JSON.stringify({ format: formatVersion, ...record }));',
    replace: "  Buffer.from(JSON.stringify({ format: formatVersion, ...record, nextRelease: 'x' }));",
  },
  // Fields in heartbeats and in requests to join: earlier releases ignore or keep them.
  {
    file: 'cluster/src/heartbeat-exchange.ts',
    find: '      levels: supportedLevels,\n',
    replace: '      levels: supportedLevels,\n      ...{ nextRelease: [1] },\n',
  },
  {
    file: 'cluster/src/join/join-client.ts',
    find: '    const request = { ...joiner, nonce: randomBytes(32) };',
    replace: "    const request = { ...joiner, nonce: randomBytes(32), added: { next_release: 'x' } };",
  },
  // An operation, refused below its level.
  {
    file: 'api/src/sys/feature-level.ts',
    find: 'import { dataReply, int,',
    replace: "import { hasFeature } from '@transitd/storage-fsm';\nimport { RequestError, dataReply, int,",
  },
  {
    file: 'api/src/sys/feature-level.ts',
    find: "  { path: 'sys/feature-level/raise', operations: { POST: raise } },\n",
    replace:
      "  { path: 'sys/feature-level/raise', operations: { POST: raise } },\n" +
      "  { path: 'sys/next-release', operations: { POST: guarded({\n" +
      "    name: 'next-release', about: 'Test', answers: answers.data(object({ level: integer })),\n" +
      "    capability: 'update', adds: true, run: async ({ node }) => {\n" +
      '      const { level } = node.requireMember().featureLevel.status;\n' +
      "      if (!hasFeature(level, 'nextRelease'))\n" +
      `        throw new RequestError('invalid_request', 'this operation needs feature level ${nextLevel}');\n` +
      '      return dataReply({ level });\n    } }) } },\n',
  },
];

/** A release that has dropped the levels below the next one. */
const withoutOldLevels: Change = {
  file: 'storage-fsm/src/level/feature-levels.ts',
  find: '  oldest: featureLevels.initial,',
  replace: `  oldest: ${nextLevel},`,
};

/** A release that reads and writes only the first version of Raft frames, as 0.1.0 does. */
const firstFrames: Change = { file: 'raft-core/src/wire/version.ts', find: 'newest: 2 };', replace: 'newest: 1 };' };

/** Releases that are installed in a temporary folder. */
export class Releases {
  readonly #folder = mkdtempSync(join(tmpdir(), 'transitd-releases-'));

  /** Returns the program of the next release. It supports all levels of this one, and a later one. */
  next(): Promise<string> {
    return this.#install('next', additions);
  }

  /** Returns the program of a release after the next one, which no longer supports the levels of this one. */
  later(): Promise<string> {
    return this.#install('later', [...additions, withoutOldLevels]);
  }

  /** Returns the program of an earlier release, with the Raft frames of 0.1.0. */
  earlier(): Promise<string> {
    return this.#install('earlier', [firstFrames]);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #install(name: string, changes: readonly Change[]): Promise<string> {
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    return changedCopy(folder, changes);
  }
}
