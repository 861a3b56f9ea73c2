import { expect } from 'chai';
import { parseSentBytes } from '../../../bench/scale/sent-bytes.ts';

describe('the bytes that a process sent', () => {
  it('are those of its own connections, without those that it accepted at a port', () => {
    const listing = [
      '0 0 127.0.0.1:8201 127.0.0.1:40001 users:(("node",pid=12,fd=9)) cubic bytes_sent:100 bytes_acked:101',
      '0 0 [::1]:40002 [::1]:8201 users:(("node",pid=12,fd=10)) cubic bytes_sent:20 bytes_acked:21',
      '0 0 127.0.0.1:8200 127.0.0.1:40003 users:(("node",pid=12,fd=11)) cubic bytes_sent:5000 bytes_acked:5001',
      '0 0 127.0.0.1:8201 127.0.0.1:40004 users:(("node",pid=123,fd=9)) cubic bytes_sent:70000',
      '0 0 127.0.0.1:40005 127.0.0.1:8201 users:(("node",pid=12,fd=12)) cubic rto:204',
    ].join('\n');
    expect(parseSentBytes(listing, 12, '8200')).to.equal(120);
  });
});
