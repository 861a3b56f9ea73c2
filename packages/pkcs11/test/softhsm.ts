import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Installation paths on Debian and other systems. */
const candidates = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib64/softhsm/libsofthsm2.so',
  '/usr/local/lib/softhsm/libsofthsm2.so',
];

/** The library of SoftHSM 2, if it is installed. */
export const softhsmLibrary = candidates.find((path) => existsSync(path));

/** Returns why tests with a token cannot run; undefined if they can. */
export function missing(): string | undefined {
  if (softhsmLibrary === undefined) return 'SoftHSM 2 is not installed (apt-get install softhsm2)';
  try {
    createRequire(import.meta.url)('pkcs11js');
  } catch {
    return 'the package pkcs11js is not built (npm run build:pkcs11)';
  }
  return undefined;
}

/** Skips the tests that need a token, with a message, if there is no token; with CI set, fails them instead. */
export function needsToken(context: Mocha.Context): void {
  const reason = missing();
  if (reason === undefined) return;
  if (process.env['CI'] !== undefined && process.env['CI'] !== 'false')
    throw new Error(`tests with a PKCS#11 token cannot run: ${reason}`);
  console.log(`      tests with a PKCS#11 token are skipped: ${reason}`);
  context.skip();
}

/** A folder of tokens. A process has only one, since the library reads its configuration once. */
export class TokenFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'transitd-softhsm-'));

  constructor() {
    mkdirSync(join(this.path, 'tokens'), { mode: 0o700 });
    const file = join(this.path, 'softhsm2.conf');
    writeFileSync(
      file,
      `directories.tokendir = ${join(this.path, 'tokens')}\nobjectstore.backend = file\nlog.level = ERROR\nslots.removable = false\n`,
    );
    process.env['SOFTHSM2_CONF'] = file;
  }

  /** Call this function before the first use of the library. */
  addToken({ label, pin }: { readonly label: string; readonly pin: string }): void {
    execFileSync('softhsm2-util', ['--init-token', '--free', '--label', label, '--so-pin', '87654321', '--pin', pin], {
      stdio: 'pipe',
    });
  }

  remove(): void {
    delete process.env['SOFTHSM2_CONF'];
    rmSync(this.path, { recursive: true });
  }
}
