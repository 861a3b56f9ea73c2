// Every format that an earlier version sent or stored is read by this version, and written again in the same way.
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  decodeAnswer,
  decodeOffer,
  decodeRequest,
  decodeWelcome,
  encodeAnswer,
  encodeOffer,
  encodeRequest,
  encodeWelcome,
} from '../../packages/cluster/src/join/join-messages.ts';
import { decodeMembership, encodeMembership } from '../../packages/cluster/src/membership/membership.ts';
import { openList } from '../../packages/cluster/src/membership/signed-list.ts';
import { heartbeatReplySchema, heartbeatRequestSchema } from '../../packages/cluster/src/standbys/heartbeat-wire.ts';
import {
  decodeBatch,
  decodeConfState,
  decodeMessage,
  decodeSnapshotMeta,
  encodeBatch,
  encodeConfState,
  encodeMessage,
  encodeSnapshotMeta,
} from '../../packages/raft-core/src/index.ts';
import { decodeLevel, encodeLevel } from '../../packages/storage-fsm/src/level/level-record.ts';
import { decodeCommand, encodeCommand } from '../../packages/storage-fsm/src/store/codec.ts';
import { decodeSpaces, encodeSpaces } from '../../packages/storage-fsm/src/store/spaces.ts';
import { type Samples, samples } from './fixtures/samples.ts';

const folder = join(import.meta.dirname, 'fixtures');
const kept = readdirSync(folder).flatMap((name) => /^(.*)\.formats\.json$/.exec(name)?.[1] ?? []);
const bytes = (text: string): Buffer => Buffer.from(text, 'hex');
const hex = (data: Uint8Array): string => Buffer.from(data).toString('hex');

describe('the formats of an earlier version', () => {
  it('exist for at least one earlier version, and for every format of this version', async () => {
    expect(kept).to.include('0.1.0');
    const [now, first] = [await samples(), read('0.1.0')];
    expect(Object.keys(first)).to.deep.equal(Object.keys(now));
    const typesOf = ({ raft }: Samples): Set<string> =>
      new Set(raft.flatMap(({ type, version }) => (version === 1 ? [type] : [])));
    expect(typesOf(first)).to.deep.equal(typesOf(now));
  });

  for (const version of kept) {
    it(`of ${version}: Raft frames are read, and written again in their version`, () => {
      const { raft, batches } = read(version);
      for (const { type, version: wire, hex: frame } of raft) {
        const message = decodeMessage(bytes(frame));
        expect(message.type).to.equal(type);
        expect(hex(encodeMessage(message, wire)), `${type} in version ${wire}`).to.equal(frame);
      }
      for (const { version: wire, hex: frame } of batches)
        expect(hex(encodeBatch(decodeBatch(bytes(frame)), wire))).to.equal(frame);
    });

    it(`of ${version}: log entries and records of the state are read, and written again as they were`, () => {
      const { transactions, configurations, snapshots, levelRecords, spacesRecords } = read(version);
      for (const [list, again] of [
        [transactions, (data: Buffer) => encodeCommand(decodeCommand(data))],
        [configurations, (data: Buffer) => encodeConfState(decodeConfState(data))],
        [snapshots, (data: Buffer) => encodeSnapshotMeta(decodeSnapshotMeta(data))],
        [levelRecords, (data: Buffer) => encodeLevel(decodeLevel(data))],
        [spacesRecords, (data: Buffer) => encodeSpaces(decodeSpaces(data))],
      ] as const)
        for (const one of list) expect(hex(again(bytes(one)))).to.equal(one);
    });

    it(`of ${version}: member lists, heartbeats and the messages of a join are read`, () => {
      const { memberships, heartbeatRequests, heartbeatReplies, joins, signedList } = read(version);
      for (const text of memberships) {
        const again = encodeMembership(decodeMembership(Buffer.from(text)));
        expect(JSON.parse(Buffer.from(again).toString())).to.deep.equal(JSON.parse(text));
      }
      for (const request of heartbeatRequests) expect(heartbeatRequestSchema.parse(request)).to.deep.include(request);
      for (const reply of heartbeatReplies) expect(heartbeatReplySchema.parse(reply)).to.deep.include(reply);
      expect(encodeRequest(decodeRequest(joins.request))).to.deep.equal(joins.request);
      expect(encodeOffer(decodeOffer(joins.offer))).to.deep.equal(joins.offer);
      expect(encodeAnswer(decodeAnswer(joins.answer))).to.deep.equal(joins.answer);
      expect(encodeWelcome(decodeWelcome(joins.welcome))).to.deep.equal(joins.welcome);
      const list = openList(signedList.list, [new X509Certificate(signedList.authority)]);
      expect(list.clusterId).to.equal(signedList.clusterId);
    });
  }
});

const read = (version: string): Samples => JSON.parse(readFileSync(join(folder, `${version}.formats.json`), 'utf8'));
