import { expect } from 'chai';
import { type Served, served } from '../served.ts';

const names = Array.from({ length: 16_500 }, (_, i) => `${String(i).padStart(6, '0')}${'x'.repeat(506)}`);

describe('a list of keys that is too long to be held in memory', () => {
  let at: Served;
  before(async () => {
    at = await served();
    await at.ask('POST transit/keys/k');
    const [path = ''] = (await at.store.paths({ prefix: 'transit/' })).paths;
    const prefix = path.slice(0, -1);
    // A list reads no values, so any value makes a name.
    for (let i = 0; i < names.length; i += 1000) {
      const some = names.slice(i, i + 1000);
      await at.store.commit({ conditions: [], writes: some.map((name) => ({ path: prefix + name, value: Buffer.alloc(1) })) });
    }
  });
  after(() => at.close());

  it('is sent as one JSON text in the usual envelope', async () => {
    const { status, headers, body } = await at.ask('GET transit/keys?list=true');
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('application/json');
    expect(body.data).to.deep.equal({ keys: [...names, 'k'] });
    const short = await at.ask('GET transit/keys/k');
    expect(Object.keys(body)).to.deep.equal(Object.keys(short.body));
    expect(body).to.include({ wrap_info: null, warnings: null, auth: null });
    expect(body.request_id).to.match(/^[0-9a-f-]{36}$/);
  });

  it('can be read in pages', async () => {
    const { body } = await at.ask(`GET transit/keys?list=true&limit=2&after=${names[999]}`);
    expect(body.data.keys).to.deep.equal(names.slice(1000, 1002));
    const large = await at.ask(`GET transit/keys?list=true&limit=15000&after=${names[999]}`);
    expect(large.body.data.keys).to.deep.equal(names.slice(1000, 16_000));
    expect((await at.ask('GET transit/keys?list=true&limit=15000&after=zzz')).status).to.equal(404);
  });

  it('is wrapped only if it can be stored', async () => {
    const wrap = { 'X-Service-Wrap-TTL': '60' };
    expect((await at.ask('GET transit/keys?list=true', { headers: wrap })).status).to.equal(413);
    const { body } = await at.ask('GET transit/keys?list=true&limit=12000', { headers: wrap });
    const unwrapped = await at.ask('POST sys/wrapping/unwrap', { token: body.wrap_info.token });
    expect(unwrapped.body.data.keys).to.have.length(12_000);
  });
});
