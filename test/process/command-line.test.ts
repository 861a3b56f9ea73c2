// @live
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { clientVariables } from '../../packages/cli/src/session/environment.ts';
import { type LiveServer, Workbench } from './live-server.ts';
import { type Circumstances, expectCode, type Ran, run } from './transitd-command.ts';

const nothingListens = 'http://127.0.0.1:9999';

describe('the command transitd', function () {
  this.timeout(240_000);
  const bench = new Workbench();

  describe('with a serving node', () => {
    let server: LiveServer;
    let home = '';
    let folder = '';
    before(async () => {
      folder = bench.folder();
      server = await bench.start({ dataDir: bench.folder() });
    });
    beforeEach(() => {
      home = bench.folder();
    });
    after(() => bench.clean());

    const transitd = (args: readonly string[], { env = {}, input = '' }: Circumstances = {}): Promise<Ran> =>
      run(args, { env: { HOME: home, TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken, ...env }, input });
    const done = async (args: readonly string[], circumstances?: Circumstances): Promise<Ran> =>
      expectCode(await transitd(args, circumstances), 0, args.join(' '));

    it('encrypts input and decrypts it unchanged, from arguments, files and standard input', async () => {
      await done(['key', 'create', 'orders']);
      const bytes = 'a line\nand another, without an end\u0000';
      const file = join(folder, 'plain');
      writeFileSync(file, bytes);
      for (const [args, input] of [
        [['key', 'encrypt', 'orders'], bytes],
        [['key', 'encrypt', 'orders', '-'], bytes],
        [['key', 'encrypt', 'orders', `@${file}`], ''],
      ] as const) {
        const { stdout: ciphertext } = await done(args, { input });
        expect(ciphertext).to.match(/^svc:v1:\S+\n$/);
        expect((await done(['key', 'decrypt', 'orders'], { input: ciphertext })).stdout).to.equal(bytes);
        expect((await done(['key', 'decrypt', 'orders', ciphertext.trim()])).stdout).to.equal(bytes);
      }
      const sealed = await done(['key', 'encrypt', 'orders', 'x', '--associated-data', 'row 7']);
      expectCode(await transitd(['key', 'decrypt', 'orders'], { input: sealed.stdout }), 2);
      expect((await done(['key', 'decrypt', 'orders', '--associated-data=row 7'], { input: sealed.stdout })).stdout).to.equal(
        'x',
      );
    });

    it('manages keys: rotation, settings, old versions, rewrapping, backup and deletion', async () => {
      await done(['key', 'create', 'kept', '-allow-plaintext-backup', '-exportable=true']);
      const { stdout: old } = await done(['key', 'encrypt', 'kept', 'x']);
      expect((await done(['key', 'rotate', 'kept', '-field=latest_version'])).stdout).to.equal('2');
      const { stdout: renewed } = await done(['key', 'rewrap', 'kept', old.trim()]);
      expect(renewed).to.match(/^svc:v2:/);
      const raise = ['key', 'config', 'kept', '--min-decryption-version', '2', '--deletion-allowed=true'];
      const refused = expectCode(await transitd(raise), 2).stderr;
      expect(refused, 'used within 30 days').to.match(
        /unless_used_within: used within that time: version 1 .*nothing was changed/,
      );
      await done([...raise, '--unless-used-within=0']);
      expectCode(await transitd(['key', 'decrypt', 'kept', old.trim()]), 2);
      const { stdout: backup } = await done(['key', 'backup', 'kept']);
      expectCode(await transitd(['key', 'delete', 'kept']), 2);
      await done(['key', 'delete', 'kept', '--unless-used-within', '0']);
      expect((await done(['key', 'usage', 'orders'])).stdout).to.match(/^Version +Encryptions +Decryptions/);
      expectCode(await transitd(['key', 'read', 'kept']), 2);
      await done(['key', 'restore', '-', 'back'], { input: backup });
      expect((await done(['key', 'decrypt', 'back', renewed.trim()])).stdout).to.equal('x');
      expect((await done(['key', 'list', '--format', 'json'])).json<string[]>())
        .to.include('back')
        .and.not.include('kept');
      expect((await done(['key', 'export', 'encryption-key', 'back', '2', '-format=json'])).json()).to.have.nested.property(
        'data.keys.2',
      );
      expectCode(await transitd(['key', 'config', 'back']), 1, 'no setting');
    });

    it('makes several data keys in one request', async () => {
      const args = ['key', 'datakeys', 'plaintext', 'orders', '3', '--bits=128', '--format=json'];
      const { key_pairs: pairs } = (await done(args)).json<{ data: { key_pairs: Record<string, string>[] } }>().data;
      expect(pairs).to.have.lengthOf(3);
      for (const { ciphertext = '', plaintext = '' } of pairs)
        expect((await done(['key', 'decrypt', 'orders', ciphertext, '--format=json'])).json()).to.have.nested.property(
          'data.plaintext',
          plaintext,
        );
      expectCode(await transitd(['key', 'datakeys', 'plaintext', 'orders', '1001']), 2);
      expectCode(await transitd(['key', 'datakeys', 'both', 'orders', '1']), 1, 'the kind');
    });

    it('rewraps with associated data, and refuses options that rewrap has not, instead of ignoring them', async () => {
      const { stdout: sealed } = await done(['key', 'encrypt', 'orders', 'x', '--associated-data=row 7', '--type=aes256-gcm96']);
      const bound = ['--associated-data', 'row 7'];
      const { stdout: renewed } = await done(['key', 'rewrap', 'orders', sealed.trim(), ...bound]);
      expect((await done(['key', 'decrypt', 'orders', renewed.trim(), ...bound])).stdout).to.equal('x');
      expectCode(await transitd(['key', 'rewrap', 'orders', sealed.trim()]), 2);
      const refused = async (...options: readonly string[]): Promise<string> =>
        expectCode(await transitd(['key', 'rewrap', 'orders', ...options]), 1, options.join(' ')).stderr;
      const file = join(folder, 'rows.jsonl');
      expect(await refused(sealed.trim(), '--padding-scheme', 'oaep')).to.contain('two padding schemes');
      for (const option of ['--context=x', '--associated-data=x'])
        expect(await refused('--file', file, '--out', `${file}.out`, option)).to.contain('give each line its own');
    });

    it('signs, and its exit code says whether a signature matches', async () => {
      await done(['key', 'create', 'pen', '--type', 'ed25519']);
      const signature = (await done(['key', 'sign', 'pen', 'text'])).stdout.trim();
      expect((await done(['key', 'verify', 'pen', 'text', '--signature', signature])).stdout).to.equal('valid\n');
      expect(expectCode(await transitd(['key', 'verify', 'pen', 'other', '--signature', signature]), 2).stdout).to.equal(
        'not valid\n',
      );
      expectCode(await transitd(['key', 'verify', 'pen', 'text']), 1, 'no signature');
      const mac = (await done(['key', 'hmac', 'pen', 'text'])).stdout.trim();
      await done(['key', 'verify', 'pen', 'text', '--hmac', mac]);
      await done(['key', 'create', 'tag', '--type=aes256-cmac']);
      const cmac = (await done(['key', 'cmac', 'tag', 'text'])).stdout.trim();
      await done(['key', 'verify', 'tag', 'text', '--cmac', cmac]);
      await done(['key', 'create', 'wraps']);
      const datakey = (await done(['key', 'datakey', 'plaintext', 'wraps', '--bits=128', '--format=json'])).json<{
        data: { plaintext: string; ciphertext: string };
      }>().data;
      const opened = await done(['key', 'decrypt', 'wraps', datakey.ciphertext, '--field=plaintext']);
      expect(opened.stdout).to.equal(datakey.plaintext);
    });

    it('reads, writes, lists and deletes any path, as vault and bao do', async () => {
      const { stderr } = expectCode(await transitd(['write', 'transit/keys/a']), 1);
      expect(stderr).to.equal('transitd: no data to write: pass name=value, or use --force to write without data\n');
      await done(['write', '-f', 'transit/keys/a']);
      await done(['write', '/transit/keys/b', 'type=aes128-gcm96', 'exportable=true']);
      await done(['write', 'transit/keys/c', '-'], { input: '{"type":"hmac","key_size":64}' });
      const file = join(folder, 'text');
      writeFileSync(file, Buffer.from('hello').toString('base64'));
      const encrypted = await done(['write', '-field=ciphertext', 'transit/encrypt/b', `plaintext=@${file}`]);
      const decrypted = await done(['write', '-format=json', 'transit/decrypt/b', 'ciphertext=-'], { input: encrypted.stdout });
      expect(decrypted.json()).to.have.nested.property('data.plaintext', Buffer.from('hello').toString('base64'));
      expect((await done(['list', 'transit/keys', '-format=json'])).json<string[]>()).to.include.members(['a', 'b', 'c']);
      expect((await done(['read', 'transit/keys/b', '-field=type'])).stdout).to.equal('aes128-gcm96');
      expect((await done(['read', 'transit/keys/b'])).stdout).to.match(/^Key +Value\n-+ +-+\n/);
      await done(['write', 'transit/keys/b/config', 'deletion_allowed=true']);
      expect((await done(['delete', 'transit/keys/b'])).stdout).to.equal('Deleted transit/keys/b, if it existed.\n');
      expect(expectCode(await transitd(['read', 'transit/keys/b']), 2).stderr).to.include('404');
      expectCode(await transitd(['read', 'transit/keys/a', '-field=colour']), 1, 'no such field');
      expectCode(await transitd(['read', 'transit/../sys/mounts']), 1, 'a path that would be folded');
    });

    it('wraps a response for a single reader', async () => {
      const wrapped = await done(['read', 'transit/keys/a', '-wrap-ttl=60s', '-field=wrapping_token']);
      const unwrapped = await done(['unwrap', '-', '--format=json'], { input: wrapped.stdout, env: { TRANSITD_TOKEN: '' } });
      expect(unwrapped.json()).to.have.nested.property('data.name', 'a');
      expectCode(await transitd(['unwrap', '-'], { input: wrapped.stdout }), 2);
      const own = await done(['token', 'create', '-policy=default', '-wrap-ttl=60s', '-field=wrapping_token']);
      expect((await done(['unwrap', '-field=token'], { env: { TRANSITD_TOKEN: own.stdout } })).stdout).to.match(/^s\./);
      expectCode(await run(['unwrap'], { env: { HOME: home, TRANSITD_ADDR: server.url } }), 1, 'no token at all');
    });

    it('creates, looks up, renews and revokes tokens', async () => {
      const made = (
        await done(['token', 'create', '-policy=default', '-ttl=1h', '-metadata=for=me', '-use-limit=9', '-format=json'])
      ).json<{
        auth: { client_token: string; accessor: string; lease_duration: number };
      }>().auth;
      expect(made.lease_duration).to.equal(3600);
      const env = { TRANSITD_TOKEN: made.client_token };
      const seen = await done(['token', 'lookup'], { env });
      expect(seen.stdout)
        .to.match(/^meta +\{"for":"me"\}$/m)
        .and.not.include(made.client_token);
      expect((await done(['token', 'lookup', '-', '-field=num_uses'], { input: made.client_token })).stdout).to.equal('8');
      expect((await done(['token', 'lookup', '-accessor', made.accessor, '-format=json'])).json()).to.have.nested.property(
        'data.id',
        '',
      );
      expect((await done(['token', 'renew', '-increment=2h', '-field=token_duration'], { env })).stdout).to.equal('7200s');
      expect((await done(['token', 'capabilities', 'transit/keys/a'], { env })).stdout).to.equal('deny\n');
      expect((await done(['token', 'capabilities', '-', 'sys/x'], { input: server.rootToken })).stdout).to.equal('root\n');
      expectCode(await transitd(['token', 'revoke']), 1, 'which one?');
      await done(['token', 'revoke', '-self'], { env });
      expectCode(await transitd(['token', 'lookup'], { env }), 2);
      expectCode(await transitd(['token', 'lookup', '-'], { input: made.client_token }), 2);
    });

    it('logs in, stores the token readable by its owner only, and uses it from then on', async () => {
      await done(['auth', 'enable', 'userpass', '-description=people']);
      await done(['write', 'auth/userpass/users/ann', 'password=-', 'policies=default'], { input: 'correct horse' });
      const secret = join(folder, 'password');
      writeFileSync(secret, 'correct horse\n');
      const env = { TRANSITD_TOKEN: '' };
      const login = ['login', '-method=userpass', 'username=ann', `password=@${secret}`];
      const wrong = expectCode(
        await transitd(['login', '-method=userpass', 'username=ann', 'password=-'], { env, input: 'battery staple' }),
        2,
      );
      expect(wrong.stdout + wrong.stderr).not.to.include('battery');
      const file = join(home, '.transitd-token');
      expect(existsSync(file)).to.equal(false);
      const { stdout } = await done(login, { env });
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      const kept = readFileSync(file, 'utf8').trim();
      expect(stdout).to.include(file).and.not.include(kept);
      expect((await done(['token', 'lookup', '-field=display_name'], { env })).stdout).to.equal('userpass-ann');
      expect((await done([...login, '-token-only'], { env })).stdout).to.match(/^s\.\w+$/);
      expect(readFileSync(file, 'utf8').trim(), 'a token that is shown is not kept').to.equal(kept);
      expect((await done(['login', '-'], { env, input: server.rootToken })).stderr).to.equal('');
      expect((await done(['login', '-'], { input: server.rootToken })).stderr).to.match(
        /^warning: .* takes precedence over the stored one; [^\n]*\n$/,
      );
      expect((await done(['token', 'lookup', '-field=display_name'], { env })).stdout).to.equal('root');
      expectCode(await transitd(['login', '-'], { env, input: 's.nobody' }), 2);
      expect(readFileSync(file, 'utf8').trim(), 'an invalid token is not stored').to.equal(server.rootToken);
      expectCode(await transitd(['login', '-method=userpass', 'username=ann'], { env }), 1, 'no terminal to ask for a password');
      expect((await done(['auth', 'list', '-format=json'])).json()).to.have.property('userpass/');
      await done(['auth', 'tune', 'userpass', '-default-lease-ttl=2h']);
      await done(['auth', 'disable', 'userpass']);
    });

    it('accepts no secret as an argument, and says what to do instead', async () => {
      const secret = 'hunter2-of-great-value';
      const before = (await done(['auth', 'list', '-format=json'])).stdout;
      for (const args of [
        ['operator', 'unseal', secret],
        ['operator', 'rekey', secret],
        ['operator', 'generate-root', '-nonce=n', secret],
        ['operator', 'generate-root', '-init', '-otp', secret],
        ['login', secret],
        ['login', `token=${secret}`],
        ['login', '-method=userpass', 'username=ann', `password=${secret}`],
        ['login', '-method=approle', 'role_id=web', `secret_id=${secret}`],
        ['login', '-method=jwt', `jwt=${secret}`],
        ['token', 'lookup', secret],
        ['token', 'renew', secret],
        ['token', 'revoke', secret],
        ['token', 'capabilities', secret, 'sys/x'],
        ['token', 'create', '-id', secret],
        ['unwrap', secret],
        ['key', 'restore', secret],
        ['write', 'auth/userpass/users/ann', `password=${secret}`],
        ['write', 'sys/unseal', `key=${secret}`],
        ['write', 'auth/token/revoke', `token=${secret}`],
      ]) {
        const { stdout, stderr } = expectCode(await transitd(args), 1, args.join(' '));
        expect(stderr).to.match(/must not be on the command line.* use \S*- to read it from standard input, or \S*@FILE/);
        expect(stdout + stderr, args.join(' ')).not.to.include(secret);
      }
      expect((await done(['auth', 'list', '-format=json'])).stdout).to.equal(before);
    });

    it('logs in with a role', async () => {
      await done(['auth', 'enable', '-path=machines', 'approle']);
      await done(['write', 'auth/machines/role/web', 'token_policies=default']);
      const roleId = (await done(['read', '-field=role_id', 'auth/machines/role/web/role-id'])).stdout;
      const secretId = (await done(['write', '-f', '-field=secret_id', 'auth/machines/role/web/secret-id'])).stdout;
      const args = ['login', '-method=approle', '-path=machines', '-token-only', `role_id=${roleId}`, 'secret_id=-'];
      expect((await done(args, { input: secretId })).stdout).to.match(/^s\./);
    });

    it('writes policies, mounts engines and reports what it did', async () => {
      const text = 'path "transit/encrypt/orders" { capabilities = ["update"] }\n';
      await done(['policy', 'write', 'app', '-'], { input: text });
      expect((await done(['policy', 'read', 'app'])).stdout).to.equal(text);
      expect((await done(['policy', 'list', '-format=json'])).json<string[]>()).to.include('app');
      const file = join(folder, 'p.hcl');
      writeFileSync(file, 'path "a" { capabilities = ["fly"] }');
      expect(expectCode(await transitd(['policy', 'write', 'app', file]), 2).stderr).to.include('400');
      expectCode(await transitd(['policy', 'write', 'app', join(folder, 'nothing')]), 1);
      await done(['policy', 'delete', 'app']);
      expect((await done(['secrets', 'enable', '-path=team/a', '-description=theirs', 'transit'])).stdout).to.equal(
        'Enabled transit at team/a/.\n',
      );
      await done(['key', 'create', 'k', '--mount', 'team/a']);
      await done(['secrets', 'tune', 'team/a/', '-ciphertext-prefix=ours']);
      expect((await done(['key', 'encrypt', 'k', 'x', '-mount=team/a'])).stdout).to.match(/^ours:v1:/);
      await done(['secrets', 'move', 'team/a', 'team/b']);
      expect((await done(['secrets', 'list', '-format=json'])).json()).to.have.nested.property('team/b/.description', 'theirs');
      await done(['secrets', 'disable', 'team/b']);
      expect((await done(['audit', 'list', '-format=json'])).json()).to.deep.equal({});
      expectCode(await transitd(['audit', 'hash', 'main', '-'], { input: 'text' }), 2);
    });

    it('shows the state of the node to its operator', async () => {
      const status = (await done(['status', '-format=json'])).json();
      expect(status).to.include({ sealed: false, initialized: true, is_self: true });
      expect((await done(['operator', 'key-status', '-field=term'])).stdout).to.equal('1');
      expect((await done(['operator', 'rotate', '-format=json'])).json()).to.have.nested.property('data.term', 2);
      expect((await done(['operator', 'members'])).stdout).to.include(server.url);
      expect((await done(['operator', 'raft', 'list-peers', '-format=json'])).json()).to.have.nested.property(
        'config.servers[0].leader',
        true,
      );
      expect((await done(['operator', 'init', '-status'])).stdout).to.include('true');
      await done(['healthcheck']);
      expect((await done(['read', 'sys/metrics', 'format=prometheus'])).stdout).to.match(/^svc_core_unsealed\S* 1$/m);
      const doctor = await done(['doctor', '--format', 'json']);
      expect(doctor.json<{ check: string; state: string }[]>()).to.deep.include({ check: 'state', state: 'ok', found: 'active' });
      for (const version of ['version', '--version', '-version', '-v'])
        expect((await done([version])).stdout).to.match(/^transitd \d+\.\d+\.\d+\n$/);
    });

    it('saves a snapshot, checks it without a server, and restores it', async () => {
      const file = join(folder, 'state.snap');
      await done(['write', '-f', 'transit/keys/before']);
      await done(['operator', 'raft', 'snapshot', 'save', file]);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
      expect(existsSync(`${file}.part`)).to.equal(false);
      expectCode(await transitd(['operator', 'raft', 'snapshot', 'save', file]), 1, 'the file already exists');
      const inspected = await run(['operator', 'raft', 'snapshot', 'inspect', '-format=json', file]);
      expect(expectCode(inspected, 0).json()).to.have.property('index').that.is.greaterThan(1);
      await done(['write', '-f', 'transit/keys/after']);
      const restored = await done(['operator', 'raft', 'snapshot', 'restore', file]);
      expect(restored.stderr).to.match(/^warning: .*revoked/);
      await done(['key', 'read', 'before']);
      expectCode(await transitd(['key', 'read', 'after']), 2);
      const damaged = join(folder, 'damaged.snap');
      writeFileSync(damaged, readFileSync(file).subarray(0, 500));
      expectCode(await run(['operator', 'raft', 'snapshot', 'inspect', damaged]), 1);
      expectCode(await transitd(['operator', 'raft', 'snapshot', 'restore', damaged]), 2);
      for (const [file, says] of [
        ['nothing', /^transitd: \S+nothing cannot be used: ENOENT\n$/],
        ['.', /^transitd: \S+ is not a regular file\n$/],
      ] as const) {
        const refused = expectCode(await transitd(['operator', 'raft', 'snapshot', 'restore', join(folder, file)]), 1);
        expect(refused.stderr).to.match(says);
      }
    });

    for (const { what, args, env, code, says } of [
      {
        what: 'an invalid token',
        args: ['key', 'list'],
        env: { TRANSITD_TOKEN: 's.wrong' },
        code: 2,
        says: /refused LIST transit\/keys with 403: permission denied/,
      },
      {
        what: 'a server that does not run',
        args: ['key', 'list'],
        env: { TRANSITD_ADDR: nothingListens },
        code: 1,
        says: /ECONNREFUSED/,
      },
      { what: 'an invalid address', args: ['status'], env: { TRANSITD_ADDR: 'n1' }, code: 1, says: /https:\/\/host:port/ },
      { what: 'a namespace', args: ['key', 'list'], env: { TRANSITD_NAMESPACE: 'team' }, code: 2, says: /404/ },
      {
        what: 'a key that does not exist',
        args: ['key', 'read', 'no'],
        env: {},
        code: 2,
        says: /GET transit\/keys\/no with 404/,
      },
      { what: 'help for an unknown command', args: ['help', 'key', 'fly'], env: {}, code: 1, says: /unknown command/ },
      { what: 'an unknown command', args: ['fly'], env: {}, code: 1, says: /unknown command/ },
      { what: 'a token in the place of a command', args: ['token', 's.wrong'], env: {}, code: 1, says: /unknown command/ },
      { what: 'an unknown command in a group', args: ['operator', 'fly'], env: {}, code: 1, says: /unknown command/ },
      { what: 'an unknown option', args: ['key', 'list', '--tokn=s.wrong'], env: {}, code: 1, says: /unknown option/ },
      { what: 'an invalid number', args: ['operator', 'init', '-key-shares=s.wrong'], env: {}, code: 1, says: /invalid/ },
      { what: 'an unknown format', args: ['key', 'list', '-format=s.wrong'], env: {}, code: 1, says: /invalid/ },
      { what: 'too many arguments', args: ['key', 'list', 's.wrong'], env: {}, code: 1, says: /too many arguments/ },
      { what: 'a member without a value', args: ['write', 'transit/keys/k', 's.wrong'], env: {}, code: 1, says: /name=value/ },
    ] as { what: string; args: string[]; env: Record<string, string>; code: number; says: RegExp }[])
      it(`exits with ${code} and one sentence without the secret for ${what}`, async () => {
        const ran = expectCode(await transitd(args, { env }), code);
        expect(ran.stdout).to.equal('');
        expect(ran.stderr)
          .to.match(says)
          .and.not.include('s.wrong')
          .and.not.include(server.rootToken)
          .and.not.match(/\n\s+at /);
      });

    it('shows the help of a command within a group, and the variables of the environment', async () => {
      const { stdout } = await done(['help', 'key', 'encrypt']);
      expect(stdout)
        .to.match(/^Usage: transitd key encrypt /)
        .and.equal((await done(['key', 'encrypt', '--help'])).stdout);
      expect(stdout.replace(/\s+/g, ' ')).to.include('(env: TRANSITD_ADDR)').and.include('TRANSITD_TOKEN sets the token');
      const all = (await done(['help'])).stdout;
      for (const name of clientVariables) expect(all).to.include(`TRANSITD_${name}`);
    });

    it('reads the variables of vault and bao if its own are not set, and tries several addresses in order', async () => {
      const env = { HOME: home, VAULT_ADDR: `${nothingListens},${server.url}`, BAO_TOKEN: server.rootToken };
      expectCode(await run(['key', 'list'], { env }), 0);
    });

    it('does not use a stored token that others can read', async () => {
      writeFileSync(join(home, '.transitd-token'), server.rootToken, { mode: 0o644 });
      const ran = expectCode(await transitd(['key', 'list'], { env: { TRANSITD_TOKEN: '' } }), 1);
      expect(ran.stderr).to.match(/has mode 0644/);
    });
  });
});
