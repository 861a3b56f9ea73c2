import { BarrierError, ProviderError } from '@transitd/barrier';
import { bodyText, noHandler, permissionDenied, RequestError, unsupportedOperation, unsupportedPath } from '@transitd/http';
import { StoreError } from '@transitd/storage-fsm';
import { TransitError } from '@transitd/transit-engine';
import { expect } from 'chai';
import { errorReply, isRefusal, statuses } from '../../src/pipeline/refusals.ts';

describe('the answer to an error', () => {
  for (const { error, status, errors, headers = {} } of [
    { error: permissionDenied(), status: 403, errors: ['permission denied'] },
    { error: unsupportedPath(), status: 404, errors: ['unsupported path'] },
    { error: unsupportedOperation(), status: 405, errors: ['unsupported operation'] },
    { error: noHandler('x/y'), status: 404, errors: ['no handler for route "x/y". route entry not found.'] },
    { error: new RequestError('not_found', ''), status: 404, errors: [] },
    { error: new RequestError('invalid_request', ''), status: 400, errors: [] },
    {
      error: new RequestError('malformed_body', 'failed to decode JSON input: x'),
      status: 400,
      errors: ['failed to decode JSON input: x'],
    },
    {
      error: new RequestError('body_too_large', 'http: request body too large'),
      status: 413,
      errors: ['http: request body too large'],
    },
    { error: new RequestError('path_too_long', 'x'), status: 414, errors: ['x'] },
    { error: new RequestError('namespace_not_found', 'namespace not found'), status: 404, errors: ['namespace not found'] },
    { error: new TransitError('not_found', 'no such key'), status: 404, errors: [] },
    { error: new TransitError('key_not_found', 'encryption key not found'), status: 400, errors: ['encryption key not found'] },
    { error: new TransitError('permission_denied', 'permission denied'), status: 403, errors: ['permission denied'] },
    { error: new BarrierError('invalid_share', 'x'), status: 400, errors: ['x'] },
    { error: new BarrierError('barrier_corrupt', 'x'), status: 500, errors: ['x'] },
    { error: new StoreError('sealed', 'transitd is sealed'), status: 503, errors: ['transitd is sealed'] },
    { error: new StoreError('busy', 'x'), status: 503, errors: ['x'], headers: { 'Retry-After': '1' } },
    { error: new StoreError('not_leader', 'x'), status: 503, errors: ['x'], headers: { 'Retry-After': '1' } },
  ]) {
    it(`${error.name} ${error.code} is ${status} with ${JSON.stringify(errors)}`, () => {
      const reply = errorReply(error);
      expect(reply.status).to.equal(status);
      expect(JSON.parse(bodyText(reply) ?? '')).to.deep.equal({ errors });
      expect(reply.headers).to.deep.equal(headers);
    });
  }

  it('says that a write may still take effect, and does not suggest a retry', () => {
    const reply = errorReply(new StoreError('outcome_unknown', 'the commit timed out'));
    expect(reply.status).to.equal(504);
    expect(JSON.parse(bodyText(reply) ?? '').errors).to.deep.equal([
      'outcome unknown, the change may still take effect: the commit timed out',
    ]);
    expect(reply.headers).to.not.have.property('Retry-After');
  });

  it('does not name the address of the provider of the seal: the caller may have no token', () => {
    const reply = errorReply(
      new ProviderError('unreachable', 'the transit seal at https://keys.internal:8200 does not answer: x'),
    );
    expect([reply.status, JSON.parse(bodyText(reply) ?? '').errors]).to.deep.equal([
      503,
      ['the provider of the seal does not answer or cannot serve now (unreachable): the log of this node says more'],
    ]);
  });

  it('has an error status for every code: 4xx for faults of the caller, 5xx for faults of the server', () => {
    for (const [code, { status, outcome }] of Object.entries(statuses)) {
      expect(status, code).to.be.within(400, 504);
      if (outcome === 'unknown') expect(status, code).to.be.oneOf([503, 504]);
    }
  });

  it('treats no other error as a refusal, whatever code it has', () => {
    for (const error of [
      new Error('x'),
      Object.assign(new Error('x'), { code: 'not_found' }),
      undefined,
      null,
      'not_found',
      { code: 'not_found' },
    ]) {
      expect(isRefusal(error)).to.equal(false);
    }
  });
});
