import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, resolve } from 'node:path';
import { type Config, isLoopback, type ListenerConfig, readConfigFile, sealConfig, tlsContext } from '@transitd/configuration';
import { requireOwnerOnly, StartError } from '@transitd/process';
import { growthBytesMin } from '@transitd/storage-fsm';
import { certificateFinding, diskFinding, type Finding, fail, ok, warn } from './finding.ts';
import { endpointOf, unreachable } from './reach.ts';

/** What a node would find with this file on this machine. */
export async function checkConfiguration(file: string, nowMs: number): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = readConfigFile(file);
  } catch (error) {
    if (error instanceof StartError) return [fail('configuration', error.message, `correct ${file}`)];
    throw error;
  }
  return [
    ok('configuration', `${file} is well-formed`),
    ...dataDirectory(config),
    ...config.listeners.flatMap((listener) => listenerFindings(listener, config, nowMs)),
    sealKeys(config),
    ...auditSinks(config),
    ...libraries(config),
    ...(await others(config)),
  ];
}

function dataDirectory({ data_dir: folder, raft }: Config): readonly Finding[] {
  const check = 'data directory';
  const place = existing(resolve(folder));
  const { bavail, bsize } = statfsSync(place);
  const disk = diskFinding(bavail * bsize, raft.disk_reserve === 0 ? 0 : Math.max(raft.disk_reserve, growthBytesMin));
  if (place !== resolve(folder))
    return [
      mayWrite(resolve(folder))
        ? ok(check, `${folder} is made at the first start`)
        : fail(check, `${place} cannot be written`, 'let the user who runs the node write there'),
      disk,
    ];
  const { uid } = statSync(folder);
  const own = process.getuid?.();
  if (own !== undefined && own !== 0 && uid !== own)
    return [
      warn(check, `${folder} belongs to another user than the one who asks`, 'run the doctor as the user who runs the node'),
      disk,
    ];
  return [
    checked(check, `${folder} is its owner's alone`, `chmod 0700 ${folder}`, () => {
      requireOwnerOnly(folder);
      requireOwnerOnly(resolve(folder, 'node.state'));
    }),
    disk,
  ];
}

/** The path itself, or the first folder above it that is there. */
const existing = (path: string): string => (existsSync(path) || dirname(path) === path ? path : existing(dirname(path)));

/** Whether there can be a file or folder at this path, which `existing` is the existing part of. */
function mayWrite(path: string): boolean {
  const place = existing(path);
  try {
    accessSync(place, constants.W_OK);
    return place === path || statSync(place).isDirectory();
  } catch {
    return false;
  }
}

function checked(check: string, found: string, todo: string, look: () => void): Finding {
  try {
    look();
    return ok(check, found);
  } catch (error) {
    if (error instanceof StartError) return fail(check, error.message, todo);
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return fail(check, `it cannot be read: ${code}`, todo);
  }
}

function listenerFindings({ address, tls }: ListenerConfig, { api_addr: api }: Config, nowMs: number): readonly Finding[] {
  const check = `listener ${address.host}:${address.port}`;
  if (tls === undefined)
    return isLoopback(address.host)
      ? [ok(check, 'without TLS, for this machine alone')]
      : [warn(check, 'tokens and plaintexts cross the network in clear', 'give it tls, or let it listen on loopback')];
  const usable = checked(
    check,
    `${tls.cert_file} and its key fit`,
    'give it a certificate and the key of it',
    () => void tlsContext(tls),
  );
  if (usable.state === 'fail') return [usable];
  const certificate = new X509Certificate(readFileSync(tls.cert_file));
  const times = { fromMs: Date.parse(certificate.validFrom), untilMs: Date.parse(certificate.validTo) };
  const key = checked(`${check} key`, "its owner's alone", `chmod 0600 ${tls.key_file}`, () => requireOwnerOnly(tls.key_file));
  const findings = [
    usable,
    certificateFinding(`${check} certificate`, times, nowMs),
    key.state === 'fail' ? { ...key, state: 'warn' as const } : key,
  ];
  if (api?.startsWith('https:') !== true) return findings;
  const { host } = endpointOf(api);
  const isNamed = (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined;
  return isNamed
    ? findings
    : [
        ...findings,
        warn(`${check} name`, `its certificate is not for ${host}, the host of api_addr`, 'name it in the certificate'),
      ];
}

function sealKeys(config: Config): Finding {
  const { seal } = config;
  if (seal.type !== 'static') return ok('seal', `${seal.type}: each start of the node needs its shares`);
  const variables = [seal.key_env, seal.previous?.key_env].filter((name) => name !== undefined);
  if (variables.some((name) => process.env[name] === undefined)) return ok('seal', `its key is in the environment of the node`);
  return checked('seal', 'its key can be read', 'give the node a key that it alone can change', () => {
    const read = sealConfig(config);
    if (read.type !== 'static') return;
    for (const key of [read.current, read.previous]) key?.key.fill(0);
  });
}

function auditSinks({ audit }: Config): readonly Finding[] {
  if (audit.length === 0) return [warn('audit', 'nothing is recorded of who asks for what', 'configure a sink')];
  return audit.map((sink) => {
    const check = `audit ${sink.name}`;
    if (sink.type !== 'file') return ok(check, 'goes to the standard output');
    return mayWrite(sink.path)
      ? ok(check, `${sink.path} can be written`)
      : fail(
          check,
          `${sink.path} cannot be written`,
          'let the user who runs the node write there: without a sink every request is refused',
        );
  });
}

const libraries = ({ pkcs11_libraries }: Config): readonly Finding[] =>
  pkcs11_libraries.map(({ name, path }) =>
    existsSync(path)
      ? ok(`library ${name}`, `${path} is there`)
      : fail(`library ${name}`, `${path} is not there`, 'install it, or correct its path'),
  );

/** The nodes that this one looks for. */
const others = ({ retry_join }: Config): Promise<readonly Finding[]> =>
  Promise.all(
    retry_join.map(async (address) => {
      const reason = await unreachable(endpointOf(address));
      return reason === undefined
        ? ok(`retry_join ${address}`, 'can be reached')
        : warn(`retry_join ${address}`, `cannot be reached: ${reason}`, 'start that node, or open the way to it');
    }),
  );
