import fc from 'fast-check';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import type { Entry, EntryType, Message } from '../../src/types.ts';
import { encodeConfState } from '../../src/wire/conf-state.ts';
import { positionMax } from '../../src/wire/snapshot-meta.ts';

const u48 = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: 2 ** 48 - 1 }));
const position = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: positionMax }));
const id = fc.integer({ min: 1, max: 2 ** 48 - 1 });
const flag = fc.boolean();
const request = fc.record({ id: u48, incarnation: u48 });
const requests = fc.array(request, { maxLength: 5 });

const contents = fc.oneof(
  fc.record({ type: fc.constantFrom<EntryType[]>('normal', 'noop'), data: fc.uint8Array({ maxLength: 60 }) }),
  id.map((voter) => ({ type: 'conf' as const, data: encodeConfState(soleVoter(voter)) })),
);
const pieces = fc.array(fc.record({ rise: fc.nat(2), content: contents }), { maxLength: 6 });

const append = fc
  .record({ prevIndex: fc.nat(2 ** 31 - 1), prevTerm: fc.nat(2 ** 31 - 1), commit: u48, round: u48, pieces })
  .map(({ pieces, ...fields }) => {
    let term = fields.prevTerm;
    const entries: Entry[] = [];
    for (const { rise, content } of pieces) {
      term += rise;
      entries.push({ term, index: fields.prevIndex + 1 + entries.length, ...content });
    }
    return { type: 'Append' as const, ...fields, entries, lastTerm: term };
  });

const meta = fc
  .record({ index: position, term: position, behind: fc.nat(9), voter: id })
  .map(({ index, term, behind, voter }) => ({ index, term, conf: soleVoter(voter), confIndex: Math.max(0, index - behind) }));

const record = fc.record;
const constant = fc.constant;
const fields = fc.oneof(
  record({ type: fc.constantFrom('PreVote' as const, 'Vote' as const), lastIndex: u48, lastTerm: u48, transfer: flag }),
  record({
    type: fc.constantFrom('PreVoteResp' as const, 'VoteResp' as const),
    reject: flag,
    forTerm: u48,
    longerLog: flag,
    votedElsewhere: flag,
  }),
  append,
  record({ type: constant('Commit' as const), prevIndex: u48, prevTerm: u48, commit: u48 }),
  record({ type: constant('AppendResp' as const), ok: constant(true as const), match: u48, round: u48 }),
  record({
    type: constant('AppendResp' as const),
    ok: constant(false as const),
    prevIndex: u48,
    hintIndex: u48,
    hintTerm: u48,
    round: u48,
  }),
  record({ type: constant('Heartbeat' as const), commit: u48, round: u48, leaseMs: fc.nat(2 ** 32 - 1) }),
  record({ type: constant('HeartbeatResp' as const), round: u48, fit: flag }),
  record({ type: constant('SnapOffer' as const), meta }),
  record({ type: constant('SnapResult' as const), index: u48, ok: flag, lastIndex: u48 }),
  record({ type: constant('TimeoutNow' as const), lastIndex: u48, lastTerm: u48 }),
  record({ type: constant('Removed' as const), atIndex: u48 }),
  record({ type: constant('ReadIndex' as const), requests }),
  record({ type: constant('ReadIndexResp' as const), requests, index: u48, ok: flag }),
  record({ type: fc.constantFrom('Confirm' as const, 'ConfirmResp' as const), request, index: u48 }),
);

const clusterId = fc.string({ unit: 'binary-ascii', maxLength: 40 });

/** Any message that a core could send, of every type. */
export const message: fc.Arbitrary<Message> = fc
  .record({ from: id, to: id, term: position, session: u48, clusterId, fields })
  .map(({ fields, term, ...envelope }) => {
    if (fields.type !== 'Append') return { ...envelope, term, ...fields };
    const { lastTerm, ...append } = fields;
    return { ...envelope, ...append, term: Math.max(term, lastTerm) };
  });

/** Returns this many messages, always the same for a seed. */
export const sampleMessages = (count: number, seed: number): readonly Message[] => fc.sample(message, { numRuns: count, seed });
