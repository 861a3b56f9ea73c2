import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('ha-status', () => {
  let api: Served;
  before(async () => {
    api = await served();
  });
  after(() => api.close());

  it('shows the nodes at the top level too, where clients in Go read them', async () => {
    const { status, body } = await api.ask('GET sys/ha-status');
    expect(status).to.equal(200);
    expect(body.data.nodes).to.have.length(1);
    expect(body.nodes).to.deep.equal(body.data.nodes);
  });
});
