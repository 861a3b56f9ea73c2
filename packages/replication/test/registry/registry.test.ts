import { setImmediate } from 'node:timers/promises';
import { CodecError } from '@transitd/raft-core';
import { memoryStore, type Store, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { until } from '../../../process/test/until.ts';
import {
  credentialOf,
  defaultActivationMs,
  emptyRegistry,
  following,
  follows,
  type Registry,
  revoked,
  secondariesMax,
  tokenIssued,
  tokenUsed,
} from '../../src/registry/registry.ts';
import { decodeRegistry, encodeRegistry, registryPath } from '../../src/registry/registry-record.ts';
import { StoredRegistry } from '../../src/registry/stored-registry.ts';
import { ReplicationError } from '../../src/replication-error.ts';
import { localPrefixes } from '../../src/scope.ts';

const hash = (digit: string): string => digit.repeat(64);
const [token, otherToken, own, other, key, otherKey] = ['a', 'b', 'c', 'd', 'e', 'f'].map(hash) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const ttlMs = defaultActivationMs;
const issue = (registry: Registry, secondary = 'east', certificate = token, nowMs = 0): Registry =>
  tokenIssued(registry, { secondary, certificate, nowMs, ttlMs });
const use = (registry: Registry, more: Partial<Parameters<typeof tokenUsed>[2]> = {}, shown = token) =>
  tokenUsed(registry, shown, { key, cluster: 'c1', certificate: own, issued: 'PEM', nowMs: 1, ...more });
const codeOf = (call: () => unknown): string => {
  try {
    call();
  } catch (error) {
    if (error instanceof ReplicationError) return error.code;
    throw error;
  }
  return 'no refusal';
};

describe('the registry of secondaries', () => {
  it('lets a token be used once, by one key', () => {
    const { registry } = use(issue(emptyRegistry));
    expect(credentialOf(registry, own, 1)).to.deep.equal({ kind: 'follow', secondary: 'east' });
    expect(codeOf(() => use(registry, { key: otherKey, certificate: other }))).to.equal('used');
  });

  it('gives the same key the certificate that was issued first, until the first hello', () => {
    const { registry } = use(issue(emptyRegistry));
    const again = use(registry, { certificate: other, issued: 'another' });
    expect(again).to.deep.equal({ registry, issued: 'PEM' });
    const greeted = follows(registry, own);
    expect(following(greeted)).to.deep.equal(['east']);
    expect(codeOf(() => use(greeted))).to.equal('used');
    expect(credentialOf(greeted, token, 1)).to.deep.equal({ kind: 'ended', why: 'used' });
  });

  it('refuses a token that expired, also one that was used', () => {
    const issued = issue(emptyRegistry);
    expect(credentialOf(issued, token, ttlMs - 1)?.kind).to.equal('activate');
    expect(credentialOf(issued, token, ttlMs)).to.deep.equal({ kind: 'ended', why: 'expired' });
    expect(codeOf(() => use(issued, { nowMs: ttlMs }))).to.equal('expired');
    expect(codeOf(() => use(use(issued).registry, { nowMs: ttlMs }))).to.equal('expired');
  });

  it('refuses a token that was revoked or replaced, and one that it does not know', () => {
    expect(codeOf(() => use(revoked(issue(emptyRegistry), 'east')))).to.equal('revoked');
    const replaced = issue(issue(emptyRegistry), 'east', otherToken);
    expect(codeOf(() => use(replaced))).to.equal('replaced');
    expect(use(replaced, {}, otherToken).issued).to.equal('PEM');
    expect(codeOf(() => use(emptyRegistry))).to.equal('unknown_token');
    expect(
      codeOf(() => use(use(issue(emptyRegistry)).registry, {}, own)),
      'a certificate is no token',
    ).to.equal('unknown_token');
  });

  it('keeps a secondary in force until its next token is used', () => {
    const first = follows(use(issue(emptyRegistry)).registry, own);
    const second = issue(first, 'east', otherToken);
    expect(credentialOf(second, own, 1)?.kind).to.equal('follow');
    const { registry } = use(second, { key: otherKey, certificate: other }, otherToken);
    expect(credentialOf(registry, own, 1)).to.deep.equal({ kind: 'ended', why: 'replaced' });
    expect(credentialOf(registry, other, 1)?.kind).to.equal('follow');
    expect(following(registry), 'the fence counts it without a break').to.deep.equal(['east']);
    expect(codeOf(() => follows(registry, own))).to.equal('unknown_secondary');
  });

  it('gives the name of a cluster that follows to no other one until it is revoked', () => {
    const waiting = issue(use(issue(emptyRegistry)).registry, 'east', otherToken);
    const others = { cluster: 'c2', key: otherKey, certificate: other };
    expect(use(waiting, others, otherToken).registry.registrations, 'nobody counts on it').to.have.length(1);
    const taken = issue(follows(use(issue(emptyRegistry)).registry, own), 'east', otherToken);
    expect(codeOf(() => use(taken, others, otherToken))).to.equal('name_taken');
    expect(credentialOf(taken, otherToken, 1)?.kind, 'the token is not used up').to.equal('activate');
    expect(
      codeOf(() => use(taken, { key: otherKey, certificate: other }, otherToken)),
      'its own cluster',
    ).to.equal('no refusal');
    const free = issue(revoked(taken, 'east'), 'east', otherToken, 1);
    expect(codeOf(() => use(free, { ...others, nowMs: 2 }, otherToken))).to.equal('no refusal');
  });

  it('ends every certificate of a secondary that is revoked', () => {
    const registry = revoked(issue(use(issue(emptyRegistry)).registry, 'east', otherToken), 'east');
    for (const one of [token, otherToken, own])
      expect(credentialOf(registry, one, 1)).to.deep.equal({ kind: 'ended', why: 'revoked' });
    expect(codeOf(() => revoked(registry, 'east'))).to.equal('unknown_secondary');
    expect(codeOf(() => follows(registry, own))).to.equal('unknown_secondary');
  });

  it('writes nothing when a hello was noted before', () => {
    const registry = follows(use(issue(emptyRegistry)).registry, own);
    expect(follows(registry, own)).to.equal(registry);
  });

  it('refuses ids, lifetimes and numbers of secondaries outside of its limits', () => {
    for (const id of ['', '-x', 'a b', 'a/b', 'a'.repeat(65), 'CN=x', 'x\n'])
      expect(
        codeOf(() => issue(emptyRegistry, id)),
        id,
      ).to.equal('malformed_id');
    for (const ttl of [0, -1, Number.NaN, 24 * 3_600_000 + 1])
      expect(codeOf(() => tokenIssued(emptyRegistry, { secondary: 'e', certificate: token, nowMs: 0, ttlMs: ttl }))).to.equal(
        'malformed_ttl',
      );
    let full = emptyRegistry;
    for (let at = 0; at < secondariesMax; at++) full = issue(full, `s-${at}`, `${at}`.padStart(64, '0'));
    expect(codeOf(() => issue(full))).to.equal('too_many');
    expect(issue(full, 's-3').activations, 'replaces a token').to.have.length(secondariesMax);
    expect(issue(full, 'east', token, ttlMs).activations, 'the others have expired').to.have.length(1);
  });

  it('is local to the cluster', () => {
    expect(localPrefixes.some((prefix) => registryPath.startsWith(prefix))).to.equal(true);
  });

  it('keeps its limits and is read back as it was, whatever happens', () => {
    const step = fc.record({
      what: fc.constantFrom('issue', 'use', 'follow', 'revoke'),
      secondary: fc.constantFrom('a', 'b', 'c'),
      certificate: fc.integer({ min: 0, max: 200 }).map((at) => at.toString(16).padStart(64, '0')),
      key: fc.constantFrom(key, otherKey),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        let registry = emptyRegistry;
        const usedBy = new Map<string, string>();
        for (const [nowMs, { what, secondary, certificate, key: shown }] of steps.entries())
          try {
            if (what === 'issue' && credentialOf(registry, certificate, nowMs) === undefined)
              registry = tokenIssued(registry, { secondary, certificate, nowMs, ttlMs: 1_000 });
            else if (what === 'use') {
              const right = credentialOf(registry, certificate, nowMs);
              const cert = `f${nowMs.toString(16).padStart(63, '0')}`;
              const cluster = shown === key ? 'c1' : 'c2';
              const before = following(registry).includes(right?.kind === 'activate' ? right.secondary : '');
              const owner = registry.registrations.find((one) => right?.kind === 'activate' && one.secondary === right.secondary);
              const used = { key: shown, cluster, certificate: cert, issued: shown, nowMs };
              registry = tokenUsed(registry, certificate, used).registry;
              if (before) expect(owner?.cluster, 'the name stays with its cluster').to.equal(cluster);
              expect(right?.kind).to.equal('activate');
              expect(usedBy.get(certificate) ?? shown, 'one key for each token').to.equal(shown);
              usedBy.set(certificate, shown);
            } else if (what === 'follow') {
              const one = registry.registrations.find((each) => each.secondary === secondary);
              if (one !== undefined) registry = follows(registry, one.certificate);
            } else if (what === 'revoke') {
              registry = revoked(registry, secondary);
              expect(following(registry)).not.to.include(secondary);
            }
            const bytes = encodeRegistry(registry);
            expect(decodeRegistry(bytes)).to.deep.equal(JSON.parse(JSON.stringify(registry)));
            expect(bytes.length).to.be.below(64 * 1024);
          } catch (error) {
            if (!(error instanceof ReplicationError)) throw error;
          }
      }),
      { numRuns: 100 },
    );
  });

  it('throws CodecError for any other bytes', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array(),
          fc.json().map((text) => Buffer.from(text)),
        ),
        (bytes) => {
          expect(() => decodeRegistry(bytes)).to.throw(CodecError);
        },
      ),
    );
    const list = encodeRegistry(use(issue(emptyRegistry)).registry).toString();
    for (const [from, to] of [
      ['"follows":false', '"follows":0'],
      ['east', 'e/st'],
      ['"cluster":"c1"', '"cluster":""'],
      [`"${own}"`, '"C0"'],
      ['"format":1', '"format":2'],
    ] as const)
      expect(() => decodeRegistry(Buffer.from(list.replace(from, to))), to).to.throw(CodecError);
  });
});

describe('the stored registry', () => {
  it('is in force on this node when a change resolves, and is read again when another node changes it', async () => {
    const store = memoryStore();
    const [here, there] = [new StoredRegistry(store), new StoredRegistry(store)];
    let changes = 0;
    there.onChange(() => changes++);
    await here.change((registry) => issue(registry));
    expect(credentialOf(here.current, token, 0)?.kind).to.equal('activate');
    await until(() => credentialOf(there.current, token, 0)?.kind === 'activate');
    expect(changes).to.be.above(0);
  });

  it('repeats a change that another one overtakes, and loses neither', async () => {
    const store = memoryStore();
    const [here, there] = [new StoredRegistry(store), new StoredRegistry(store)];
    await Promise.all([
      here.change((registry) => issue(registry)),
      there.change((registry) => issue(registry, 'west', otherToken)),
    ]);
    await here.refresh();
    expect(here.current.activations.map(({ secondary }) => secondary)).to.have.members(['east', 'west']);
  });

  it('writes nothing for a change that is refused or changes nothing', async () => {
    const store = memoryStore();
    const stored = new StoredRegistry(store);
    await stored.change((registry) => registry);
    const error = await stored.change((registry) => revoked(registry, 'east')).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(ReplicationError);
    expect(store.status().lastIndex).to.equal(0);
  });

  it('shows a change when it returns, also while a newer read is running', async () => {
    const store = memoryStore();
    const held: (() => void)[] = [];
    let isHeld = false;
    const slow: Pick<Store, 'get' | 'commit' | 'watch'> = {
      get: async (path) => {
        const record = await store.get(path);
        if (isHeld) await new Promise<void>((resolve) => held.push(resolve));
        return record;
      },
      commit: async (transaction) => {
        const committed = await store.commit(transaction);
        isHeld = true;
        return committed;
      },
      watch: () => () => undefined,
    };
    const stored = new StoredRegistry(slow);
    const changed = stored.change((registry) => issue(registry)).then(() => stored.current.activations.length);
    await until(() => held.length === 1);
    const newer = stored.refresh();
    await until(() => held.length === 2);
    held[0]?.();
    await setImmediate();
    held[1]?.();
    expect(await changed).to.equal(1);
    await newer;
  });

  it('admits nobody when the record cannot be read', async () => {
    const store = memoryStore();
    let isSealed = false;
    const sealing: Pick<Store, 'get' | 'commit' | 'watch'> = {
      get: async (path) => {
        if (isSealed) throw new StoreError('sealed', 'sealed');
        return store.get(path);
      },
      commit: (transaction) => store.commit(transaction),
      watch: (prefix, listener) => store.watch(prefix, listener),
    };
    const stored = new StoredRegistry(sealing);
    await stored.change((registry) => issue(registry));
    isSealed = true;
    await stored.refresh().catch(() => undefined);
    expect(credentialOf(stored.current, token, 0)).to.equal(undefined);
    expect(stored.isRead, 'empty because it was not read').to.equal(false);
    isSealed = false;
    await stored.refresh();
    expect(stored.isRead).to.equal(true);
    expect(credentialOf(stored.current, token, 0)?.kind).to.equal('activate');
  });
});
