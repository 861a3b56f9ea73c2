import { bodyText } from '@transitd/http';
import { expect } from 'chai';
import { wrapReply } from '../../src/operation/wrap-info.ts';

describe('the reply to a wrapped response', () => {
  const info = { token: 't', accessor: 'a', path: 'p', createdMs: 0, ttlS: 1 };
  const sent = { token: 't', accessor: 'a', ttl: 1, creation_time: '1970-01-01T00:00:00.000Z', creation_path: 'p' };

  for (const { wrappedAccessor, wrap_info } of [
    { wrappedAccessor: 'w', wrap_info: { ...sent, wrapped_accessor: 'w' } },
    { wrappedAccessor: '', wrap_info: sent },
  ])
    it(`has the wrapping token, and ${wrappedAccessor === '' ? 'no accessor' : 'the accessor of the new token'}`, () => {
      const text = bodyText(wrapReply({ ...info, wrappedAccessor })) ?? '';
      expect(JSON.parse(text)).to.deep.include({ data: null, auth: null, warnings: null, wrap_info });
      expect(text).to.include(`"wrap_info":${JSON.stringify(wrap_info)},`); // the order too
    });
});
