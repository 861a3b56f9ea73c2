import type { AuditDeviceConfig, AuditDevices } from '@transitd/audit';
import { boolean, map, object, pathText, RequestError, string, text, topLevelDataReply } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guarded, type Route } from '../operation/operation.ts';
import { shown } from '../operation/shown.ts';

const shownDevice = shown<AuditDeviceConfig>({
  type: [string, ({ type }) => type],
  path: [string, ({ name }) => `${name}/`],
  description: [string, () => ''],
  local: [boolean, () => false],
  options: [
    map(string),
    (device) =>
      device.type === 'file'
        ? { file_path: device.path, mode: `0${device.mode.toString(8)}`, sync: String(device.sync) }
        : { file_path: 'stdout' },
  ],
});

const device = pathText('Name of the audit device');

/** Routes of the configured audit devices. Changes through the API are refused, so that no token can disable the audit. */
export function auditRoutes(audit: AuditDevices | undefined): readonly Route[] {
  const devices = audit?.configs ?? [];

  const list = guarded({
    name: 'audit-list',
    about: 'List the audit devices of this node',
    answers: answers.topLevelData(map(shownDevice.schema)),
    capability: 'read',
    sudo: true,
    run: () => topLevelDataReply(Object.fromEntries(devices.map((device) => [`${device.name}/`, shownDevice.json(device)]))),
  });

  /** Returns the HMAC that stands for a string in the entries of one device, so that the entries can be searched for it. */
  const hash = guarded({
    name: 'audit-hash',
    about: 'Compute the HMAC of a string as it appears in the entries of an audit device',
    takes: { device, input: text('String to hash', { required: true, long: true }) },
    answers: answers.topLevelData(object({ hash: string })),
    where: 'replica',
    capability: 'update',
    run: async ({ services }, { values: { device, input = '' } }) => {
      if (input === '') throw new RequestError('invalid_request', 'the "input" parameter is empty');
      if (!devices.some(({ name }) => name === device))
        throw new RequestError('invalid_request', `unknown audit device "${device}"`);
      const hashText = await services.auditKey.hashOf(device);
      return topLevelDataReply({ hash: hashText(input) });
    },
  });

  const refusal = (verb: 'enable' | 'disable'): GuardedOperation =>
    guarded({
      name: `audit-${verb}`,
      about: 'Not supported: audit devices are set in the configuration file',
      takes: { device },
      answers: {},
      where: 'replica',
      capability: 'update',
      sudo: true,
      run: () => {
        throw new RequestError(
          'invalid_request',
          `cannot ${verb} audit device via API; use declarative, config-based audit device management instead`,
        );
      },
    });

  return [
    { path: 'sys/audit', operations: { GET: list } },
    {
      path: 'sys/audit/:device',
      operations: { POST: refusal('enable'), DELETE: { ...refusal('disable'), capability: 'delete' } },
    },
    { path: 'sys/audit-hash/:device', operations: { POST: hash } },
  ];
}
