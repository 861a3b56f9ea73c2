import type { AuditTrail, SinkConfig } from '../audit/audit-trail.ts';
import { dataReply, twiceReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { GuardedOperation, Route } from './operation.ts';

const shown = (sink: SinkConfig): object => ({
  type: sink.type,
  path: `${sink.name}/`,
  description: '',
  local: false,
  options:
    sink.type === 'file'
      ? { file_path: sink.path, mode: `0${sink.mode.toString(8)}`, sync: String(sink.sync) }
      : { file_path: 'stdout' },
});

/** The sinks of a configuration: changing them by API is refused, so that no token can end the audit. */
export function auditRoutes(audit: AuditTrail | undefined): readonly Route[] {
  const devices = audit?.devices ?? [];

  const list: GuardedOperation = {
    name: 'audit-list',
    access: 'token',
    capability: 'read',
    sudo: true,
    run: () => twiceReply(Object.fromEntries(devices.map((sink) => [`${sink.name}/`, shown(sink)]))),
  };

  /** What stands for a text in the entries of one sink, to look for it there. */
  const hash: GuardedOperation = {
    name: 'audit-hash',
    access: 'token',
    where: 'replica',
    capability: 'update',
    run: async ({ service }, { body, params }) => {
      const device = params['device'] ?? '';
      const { input = '' } = fields({ input: 'string' }, body).values;
      if (input === '') throw new RequestError('invalid_request', 'the "input" parameter is empty');
      if (!devices.some(({ name }) => name === device))
        throw new RequestError('invalid_request', `unknown audit device "${device}"`);
      const hashText = await service.auditKey.hashOf(device);
      return dataReply(JSON.stringify({ hash: hashText(input) }));
    },
  };

  const refused = (verb: 'enable' | 'disable'): GuardedOperation => ({
    name: `audit-${verb}`,
    access: 'token',
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
      operations: { POST: refused('enable'), DELETE: { ...refused('disable'), capability: 'delete' } },
    },
    { path: 'sys/audit-hash/:device', operations: { POST: hash } },
  ];
}
