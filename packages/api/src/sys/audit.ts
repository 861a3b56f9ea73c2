import type { AuditTrail, SinkConfig } from '@transitd/audit';
import { boolean, map, object, RequestError, string, text, twiceReply } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { type GuardedOperation, guarded, type Route } from '../operation/operation.ts';

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

const device = text('name of the sink', { required: true });
const sinkSchema = object({ type: string, path: string, description: string, local: boolean, options: map(string) });

/** The sinks of a configuration: changing them by API is refused, so that no token can end the audit. */
export function auditRoutes(audit: AuditTrail | undefined): readonly Route[] {
  const devices = audit?.devices ?? [];

  const list = guarded({
    name: 'audit-list',
    about: 'the sinks of this node',
    answers: answers.twice(map(sinkSchema)),
    capability: 'read',
    sudo: true,
    run: () => twiceReply(Object.fromEntries(devices.map((sink) => [`${sink.name}/`, shown(sink)]))),
  });

  /** What stands for a text in the entries of one sink, to look for it there. */
  const hash = guarded({
    name: 'audit-hash',
    about: 'what stands for a text in the entries of a sink',
    takes: { device, input: text('the text', { required: true }) },
    answers: answers.twice(object({ hash: string })),
    where: 'replica',
    capability: 'update',
    run: async ({ service }, { values: { device = '', input = '' } }) => {
      if (input === '') throw new RequestError('invalid_request', 'the "input" parameter is empty');
      if (!devices.some(({ name }) => name === device))
        throw new RequestError('invalid_request', `unknown audit device "${device}"`);
      const hashText = await service.auditKey.hashOf(device);
      return twiceReply({ hash: hashText(input) });
    },
  });

  const refused = (verb: 'enable' | 'disable'): GuardedOperation =>
    guarded({
      name: `audit-${verb}`,
      about: 'refused: the sinks stand in the configuration',
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
      operations: { POST: refused('enable'), DELETE: { ...refused('disable'), capability: 'delete' } },
    },
    { path: 'sys/audit-hash/:device', operations: { POST: hash } },
  ];
}
