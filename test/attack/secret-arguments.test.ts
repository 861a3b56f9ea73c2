// @live
// Every user of the machine can read command-line arguments, so the command refuses secrets there before it sends anything.
import { expect } from 'chai';
import { processMs } from '../process/live-server.ts';
import { expectCode, run } from '../process/transitd-command.ts';

describe('a secret on the command line', function () {
  this.timeout(processMs);
  const secret = 'hunter2-of-great-value';

  for (const args of [
    ['operator', 'unseal', secret],
    ['login', secret],
    ['login', '-method=userpass', 'username=ann', `password=${secret}`],
    ['unwrap', secret],
    ['write', 'sys/unseal', `key=${secret}`],
  ])
    it(`is refused by ${args.slice(0, 2).join(' ').replace(secret, '…')}, and not repeated in the error`, async () => {
      const { stdout, stderr } = expectCode(await run(args), 1);
      expect(stderr).to.match(/must not be on the command line/);
      expect(stdout + stderr).not.to.include(secret);
    });
});
