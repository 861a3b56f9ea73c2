import { localPrefixes } from '@transitd/replication';
import { StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { replicationControlRoutes } from '../../src/sys/replication/control.ts';
import { type RealNode, realNode } from '../real-node.ts';

const dr = 'sys/replication/dr/secondary';
const configuration = 'sys/storage/raft/configuration';
const denied = [403, ['permission denied']];
const disabled = [400, ['path disabled in replication DR secondary mode: ask the primary cluster']];

describe('an operation token', () => {
  let real: RealNode;
  beforeEach(async () => {
    real = await realNode();
  });
  afterEach(() => real.close());

  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of any shape
  async function ask(line: string, body?: unknown, token?: string): Promise<{ readonly status: number; readonly body: any }> {
    const [method = '', path = ''] = line.split(' ');
    const answer = await fetch(`${real.url}/${path}`, {
      method,
      ...(token !== undefined && { headers: { 'x-service-token': token } }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? {} : JSON.parse(text) };
  }
  const refusal = async (...request: Parameters<typeof ask>) => {
    const { status, body } = await ask(...request);
    return [status, body.errors];
  };

  /** Makes the cluster a secondary that has not heard of its primary yet. */
  async function attach(): Promise<void> {
    const replication = { kind: 'attach', set: '0a'.repeat(16), local: localPrefixes } as const;
    const committed = await real.node.member?.replica.commit({ replication });
    expect(committed?.outcome).to.equal('committed');
  }

  async function generate(): Promise<string> {
    const begun = await ask(`PUT ${dr}/generate-operation-token/attempt`, {});
    expect(begun.body).to.include({ started: true, progress: 0, required: 1, otp_length: 26 });
    const given = { key: real.share, nonce: begun.body.nonce };
    const { body } = await ask(`PUT ${dr}/generate-operation-token/update`, given);
    expect(body).to.include({ complete: true, progress: 1 });
    const pad = Buffer.from(begun.body.otp);
    const token = Buffer.from(Buffer.from(body.encoded_token, 'base64').map((byte, at) => byte ^ (pad[at] ?? 0))).toString();
    expect(token).to.match(/^dr\.[0-9A-Za-z]{23}$/);
    return token;
  }

  it('may wait for the fence: a standby that forwards a promotion or a leave waits too, and it takes no place of short requests', () => {
    const slow = replicationControlRoutes.filter(({ operations: { POST: operation } }) => operation && 'isSlow' in operation);
    expect(slow.map(({ path }) => path)).to.have.members([
      `${dr}/enable`,
      `${dr}/promote`,
      `${dr}/disable`,
      `${dr}/update-primary`,
      'sys/replication/dr/primary/salvage', // it reads a whole archive
    ]);
  });

  it('is made on a secondary only, and its attempts are those of no other ceremony', async () => {
    const why = 'operation tokens are made on a cluster that is a disaster-recovery secondary';
    for (const line of [`GET ${dr}/generate-operation-token/attempt`, `POST ${dr}/generate-operation-token/attempt`])
      expect(await refusal(line)).to.deep.equal([400, [why]]);
    await attach();
    expect(await refusal('GET sys/generate-root/attempt')).to.deep.equal(disabled);
    const begun = await ask(`POST ${dr}/generate-operation-token/attempt`, {});
    expect(real.node.member?.barrier.rootGeneration.status.started).to.equal(false);
    expect((await ask(`GET ${dr}/generate-operation-token/attempt`)).body).to.include({ started: true, nonce: '' });
    const wrong = { key: Buffer.alloc(33, 1).toString('base64'), nonce: begun.body.nonce };
    expect((await ask(`POST ${dr}/generate-operation-token/update`, wrong)).status).to.equal(400);
    expect((await ask(`DELETE ${dr}/generate-operation-token/attempt`, { nonce: begun.body.nonce })).status).to.equal(204);
  });

  it('authorizes operations on the cluster, and nothing else', async () => {
    await attach();
    const token = await generate();
    const body = { dr_operation_token: token };
    for (let times = 0; times < 2; times++) {
      expect((await ask(`POST ${configuration}`, body)).body.data.config.servers).to.have.length(1);
      expect((await ask(`GET ${configuration}`, undefined, token)).status).to.equal(200);
      expect((await ask('POST sys/storage/raft/autopilot/state', body)).body.data.healthy).to.equal(true);
    }
    expect(await refusal(`GET ${configuration}`)).to.deep.equal(denied);
    for (const wrong of ['', 'dr.', token.slice(0, -1), `dr.${'0'.repeat(23)}`])
      expect(await refusal(`POST ${configuration}`, { dr_operation_token: wrong }), wrong).to.deep.equal(denied);
    expect(await refusal('GET transit/keys/k', undefined, token)).to.deep.equal(disabled);
    expect(await refusal('POST sys/policies/acl/p', { policy: '', ...body })).to.deep.equal(disabled);
    expect(await refusal('POST sys/storage/raft/snapshot', body, token)).to.deep.equal(disabled);
    expect(await refusal('GET auth/token/lookup-self', undefined, token)).to.deep.equal(disabled);
    for (const line of ['POST sys/replication/dr/primary/demote', `POST ${dr}/enable`])
      expect(await refusal(line, body, token), line).to.deep.equal(denied);
  });

  it('ends with the first change that succeeds, not with a refused one', async () => {
    await attach();
    const body = { dr_operation_token: await generate() };
    const early = await refusal(`POST ${dr}/promote`, body);
    expect(early).to.deep.equal([400, ['this secondary has not received the state of its primary yet']]);
    const changed = await ask('POST sys/storage/raft/autopilot/configuration', { ...body, min_quorum: 3 });
    expect(changed.status).to.equal(204);
    expect(await refusal(`POST ${configuration}`, body)).to.deep.equal(denied);

    const next = { dr_operation_token: await generate() };
    expect((await ask(`POST ${dr}/disable`, next)).status).to.equal(204);
    expect(await refusal(`POST ${configuration}`, next)).to.deep.equal(denied);
    expect((await ask(`GET ${configuration}`, undefined, real.rootToken)).status).to.equal(200);
  });

  it('ends with a change that may have been made, also if its request had a member without effect', async () => {
    await attach();
    const body = { dr_operation_token: await generate() };
    const { replica } = real.node.member ?? expect.fail('the node has no store');
    const { commit } = replica;
    replica.commit = () => Promise.reject(new StoreError('outcome_unknown', 'a test'));
    const { status, body: answer } = await ask(`POST sys/storage/raft/autopilot/configuration`, {
      ...body,
      min_quorum: 3,
      other: 1,
    });
    replica.commit = commit;
    expect([status, answer.warnings?.length]).to.deep.equal([504, 1]);
    expect(await refusal(`POST ${configuration}`, body)).to.deep.equal(denied);
  });

  it('ends when it is deleted, or when another one is made', async () => {
    await attach();
    const first = { dr_operation_token: await generate() };
    const second = { dr_operation_token: await generate() };
    expect(await refusal(`POST ${configuration}`, first)).to.deep.equal(denied);
    expect(await refusal(`POST ${dr}/operation-token/delete`, first)).to.deep.equal(denied);
    expect((await ask(`POST ${dr}/operation-token/delete`, second)).status).to.equal(204);
    expect(await refusal(`POST ${configuration}`, second)).to.deep.equal(denied);
  });

  it('is not needed by a caller with the rights', async () => {
    await attach();
    expect((await ask(`GET ${configuration}`, undefined, real.rootToken)).status).to.equal(200);
    const changed = await ask('POST sys/storage/raft/autopilot/configuration', { min_quorum: 3 }, real.rootToken);
    expect(changed.status).to.equal(204);
  });
});
