import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ClusterView } from '@transitd/node';
import { expect } from 'chai';
import { ReportStreams } from '../../../node/src/reports/report-streams.ts';
import { type Served, served } from '../served.ts';

const right = 'path "sys/nodes" { capabilities = ["read"] }';

describe('sys/nodes', () => {
  let server: Served;
  const view = async (): Promise<ClusterView> => ({ asked: 'n1', nodes: [] });
  before(async () => {
    server = await served();
    const reports = { view, streams: new ReportStreams({ view }, { everyMs: 1 }) };
    Object.assign(server.node, { member: { reports } });
    await server.ask('POST sys/policies/acl/auditor', { body: { policy: right } });
  });
  after(() => server.close());

  const tokenWith = async (...policies: readonly string[]): Promise<string> =>
    (await server.ask('POST auth/token/create', { body: { policies } })).body.auth.client_token;
  /** Opens a stream and waits for its first line. */
  const follow = async (token: string): Promise<Readable> => {
    const url = new URL('/v1/sys/nodes?follow=true', server.url);
    const { status, headers, body } = await fetch(url, { headers: { 'X-Service-Token': token } });
    expect([status, headers.get('content-type')]).to.deep.equal([200, 'application/x-ndjson']);
    const stream = Readable.fromWeb(body as import('node:stream/web').ReadableStream);
    const [line] = await once(stream, 'data');
    expect(JSON.parse(String(line).split('\n', 1)[0] ?? '')).to.deep.equal(await view());
    return stream;
  };

  it('answers once in the envelope, without follow', async () => {
    const token = await tokenWith('auditor');
    for (const query of ['', '?follow=false'])
      expect((await server.ask(`GET sys/nodes${query}`, { token })).body.data).to.deep.equal(await view());
    expect((await server.ask('GET sys/nodes?follow=perhaps', { token })).status).to.equal(400);
    const other = await tokenWith('default');
    for (const query of ['', '?follow=true'])
      expect((await server.ask(`GET sys/nodes${query}`, { token: other })).status).to.equal(403);
  });

  it('refuses to wrap a stream', async () => {
    const headers = { 'X-Service-Wrap-TTL': '60' };
    const { status, body } = await server.ask('GET sys/nodes?follow=true', { headers });
    expect([status, body.errors]).to.deep.equal([400, ['this response cannot be wrapped']]);
  });

  it('ends a stream when its token is revoked', async () => {
    const token = await tokenWith('auditor');
    const stream = await follow(token);
    await server.ask('POST auth/token/revoke', { body: { token } });
    await text(stream);
  });

  it('ends a stream when the policy of its token no longer allows it', async () => {
    const stream = await follow(await tokenWith('auditor'));
    await server.ask('POST sys/policies/acl/auditor', { body: { policy: 'path "sys/nodes" { capabilities = ["deny"] }' } });
    await text(stream);
    await server.ask('POST sys/policies/acl/auditor', { body: { policy: right } });
  });

  it('ends a stream when the node is sealed', async () => {
    const stream = await follow(await tokenWith('auditor'));
    const { services } = server.node;
    Object.assign(server.node, { services: undefined });
    await text(stream);
    Object.assign(server.node, { services });
  });

  it('ends a stream when the cluster no longer serves its clients, as a secondary or a superseded primary', async () => {
    const stream = await follow(await tokenWith('auditor'));
    const { eligibility } = server.node;
    server.node.eligibility = Object.assign(Object.create(eligibility), { isSecondary: true });
    await text(stream);
    server.node.eligibility = eligibility;
  });

  it('refuses a fifth stream of one token, and not another token', async () => {
    const token = await tokenWith('auditor');
    const streams = await Promise.all([1, 2, 3, 4].map(() => follow(token)));
    const { status, body, headers } = await server.ask('GET sys/nodes?follow=true', { token });
    expect([status, headers.get('retry-after')]).to.deep.equal([503, '1']);
    expect(body.errors[0]).to.include('4 times already');
    const other = await follow(await tokenWith('auditor'));
    for (const stream of [...streams, other]) stream.destroy();
  });
});
