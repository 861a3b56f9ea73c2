// @live
// The command as an operator uses it: a node with a Shamir seal and TLS, and errors of the command itself.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Workbench } from './live-server.ts';
import { expectCode, type Ran, run } from './transitd-command.ts';

const nothingListens = 'http://127.0.0.1:9999';

describe('the command transitd for operators', function () {
  this.timeout(240_000);
  const bench = new Workbench();

  describe('with a node that has a Shamir seal and TLS', () => {
    afterEach(() => bench.clean());

    it('takes the node from uninitialized to new shares, and back to sealed', async () => {
      const folder = bench.folder();
      const [certFile, keyFile] = [join(folder, 'crt'), join(folder, 'key')];
      execFileSync(
        'openssl',
        [
          ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile],
          ...['-out', certFile, '-days', '2', '-subj', '/CN=node', '-addext', 'subjectAltName=IP:127.0.0.1'],
        ],
        { stdio: 'ignore' },
      );
      const config = join(folder, 'transitd.yaml');
      writeFileSync(
        config,
        `node_id: n1\ndata_dir: ${folder}/data\nlisteners:\n` +
          `  - { address: "127.0.0.1:0", tls: { cert_file: ${certFile}, key_file: ${keyFile} } }\n`,
      );
      const checked = expectCode(await run(['doctor', '--config', config]), 0);
      expect(checked.stdout).to.match(/^warn +listener \S+ certificate .*in 1 days/m);

      const server = await bench.start({ dataDir: '', command: ['server', '--config', config] });
      const env = { HOME: folder, TRANSITD_ADDR: server.url };
      const distrusted = expectCode(await run(['status'], { env }), 1);
      expect(distrusted.stderr).to.include('DEPTH_ZERO_SELF_SIGNED_CERT');
      const transitd = (args: readonly string[], input = '', more: Readonly<Record<string, string>> = {}): Promise<Ran> =>
        run(args, { env: { ...env, TRANSITD_CACERT: certFile, ...more }, input });

      /** Several commands at once; none of them changes anything. */
      const ends = async (
        code: number,
        ...lines: (readonly [args: readonly string[], input?: string, more?: Readonly<Record<string, string>>])[]
      ) => {
        const ran = await Promise.all(lines.map((line) => transitd(...line)));
        for (const [at, one] of ran.entries()) expectCode(one, code, lines[at]?.[0].join(' '));
      };

      await ends(2, [['status']], [['operator', 'init', '-status']], [['operator', 'init', '-recovery-shares=1']]);
      const init = expectCode(await transitd(['operator', 'init', '-key-shares=3', '-key-threshold=2', '-format=json']), 0).json<{
        unseal_keys_b64: string[];
        unseal_keys_hex: string[];
        root_token: string;
      }>();
      expect(init.unseal_keys_hex).to.have.length(3);
      const [first = '', second = '', third = ''] = init.unseal_keys_b64;
      const root = { TRANSITD_TOKEN: init.root_token };
      expect(expectCode(await transitd(['key', 'list'], '', root), 2).stderr).to.include('sealed');
      expectCode(await transitd(['healthcheck']), 2);

      const half = expectCode(await transitd(['operator', 'unseal', '-'], `${first}\n`), 0);
      expect(half.stdout)
        .to.match(/^Unseal Progress +1\/2$/m)
        .and.not.include(first);
      const reset = expectCode(await transitd(['operator', 'unseal', '-reset']), 0);
      expect(reset.stdout, 'anybody may ask for it').to.match(/^Unseal Progress +1\/2$/m);
      expect(reset.stderr).to.include('warning: a share was given less than 60 s ago: the shares are kept');
      const wrong = Buffer.from(first, 'base64').fill(7).toString('base64');
      const refused = expectCode(await transitd(['operator', 'unseal', '-'], wrong), 2);
      expect(refused.stderr).not.to.include(wrong);
      expectCode(await transitd(['operator', 'unseal']), 1, 'no terminal to ask for a share');
      expectCode(await transitd(['operator', 'unseal', '-'], first), 0);
      expect(
        expectCode(await transitd(['operator', 'unseal', '-format=json', '-'], init.unseal_keys_hex[1]), 0).json(),
      ).to.have.property('sealed', false);
      await ends(0, [['status']], [['healthcheck']], [['doctor'], '', root]);

      await ends(1, [['operator', 'rekey', '-'], third, root], [['operator', 'rekey', '-init', '-status'], '', root]);
      expectCode(await transitd(['operator', 'rekey', '-init', '-key-shares=1', '-key-threshold=1'], '', root), 0);
      expectCode(await transitd(['operator', 'rekey', '-cancel'], '', root), 0);
      const begun = await transitd(['operator', 'rekey', '-init', '-key-shares=1', '-verify', '-format=json'], '', root);
      const { nonce } = expectCode(begun, 0).json<{ nonce: string }>();
      expectCode(await transitd(['operator', 'rekey', '-nonce=other', '-'], second, root), 2, 'another exchange');
      expect(expectCode(await transitd(['operator', 'rekey', '-nonce', nonce, '-'], second, root), 0).stdout).to.match(
        /^Progress +1\/2$/m,
      );
      const made = expectCode(await transitd(['operator', 'rekey', '-'], third, root), 0).stdout;
      const [, share = ''] = /^Key 1: (\S+)$/m.exec(made) ?? [];
      const [, verification = ''] = /--verify --nonce (\S+)$/m.exec(made) ?? [];
      expectCode(await transitd(['operator', 'rekey', '-verify', '-nonce', verification, '-'], share, root), 0);

      const begin = ['operator', 'generate-root', '-init', '-format=json'];
      const attempt = expectCode(await transitd(begin), 0).json<{ nonce: string; otp: string; otp_length: number }>();
      expect(attempt.otp).to.have.length(attempt.otp_length);
      const told = expectCode(await transitd(['operator', 'generate-root', '-status', '-format=json']), 0);
      expect(told.json()).to.include({ started: true, nonce: '', progress: 0, required: 1, complete: false, otp: '' });
      const give = (nonce: string, given: string): Promise<Ran> =>
        transitd(['operator', 'generate-root', '-format=json', '-nonce', nonce, '-'], given);
      await ends(
        2,
        [begin],
        [['operator', 'generate-root', '-cancel']],
        [['operator', 'generate-root', '-cancel', '-nonce=other']],
        [['operator', 'generate-root', '-nonce=other', '-'], share],
        [['operator', 'generate-root', '-nonce', attempt.nonce, '-'], first],
      );
      expectCode(await transitd(['operator', 'generate-root', '-'], share), 1, 'for which attempt?');
      const encoded = expectCode(await give(attempt.nonce, share), 0).json<{ encoded_token: string; complete: boolean }>();
      expect(encoded.complete).to.equal(true);
      const decode = ['operator', 'generate-root', '-decode', encoded.encoded_token, '-otp=-'];
      expectCode(await transitd(decode, 'x'.repeat(25)), 1, 'an OTP of another length');
      const { stdout: newRoot } = expectCode(await transitd(decode, attempt.otp), 0);
      expect(newRoot).to.match(/^s\.\w{24}$/);
      const looked = expectCode(await transitd(['token', 'lookup', '-format=json'], '', { TRANSITD_TOKEN: newRoot }), 0);
      expect(looked.json()).to.deep.nested.include({ 'data.policies': ['root'], 'data.orphan': true, 'data.ttl': 0 });
      expectCode(await give(attempt.nonce, share), 2, 'one agreement makes one token');
      expectCode(await transitd(begin), 0);
      expectCode(await transitd(['operator', 'generate-root', '-cancel'], '', root), 0);
      const { nonce: own } = expectCode(await transitd([...begin, '-otp=-'], 'o'.repeat(26)), 0).json<{ nonce: string }>();
      expectCode(await transitd(['operator', 'generate-root', '-cancel', '-nonce', own]), 0);

      expectCode(await transitd(['operator', 'seal']), 2, 'without a token');
      expectCode(await transitd(['operator', 'seal'], '', root), 0);
      expectCode(await transitd(['status']), 2);
      expectCode(await transitd(['operator', 'unseal', '-'], first), 2, 'an old share');
      expectCode(await transitd(['operator', 'unseal', '-'], share), 0);
      expectCode(await transitd(['status']), 0);
      expectCode(await transitd(['operator', 'step-down'], '', root), 0);
    });
  });

  describe('with an error of the command itself', () => {
    afterEach(() => bench.clean());

    it('exits with 1 from the doctor, which says what to do', async () => {
      const folder = bench.folder();
      const config = join(folder, 'transitd.yaml');
      writeFileSync(config, 'color: red\n');
      const { stdout } = expectCode(await run(['doctor', '--config', config]), 1);
      expect(stdout).to.match(new RegExp(`^fail +configuration .*correct ${config}$`, 'm'));
      expect(expectCode(await run(['doctor', '--address', nothingListens]), 1).stdout).to.match(/^fail +node /m);
    });
  });
});
