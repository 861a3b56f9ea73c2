import type { Quota } from '@transitd/access';
import { dataReply, noContent, writtenReply } from '../http/envelope.ts';
import { RequestError } from '../http/error-answer.ts';
import { fields } from '../http/fields.ts';
import type { JsonValue } from '../http/json.ts';
import type { Reply } from '../http/reply.ts';
import { textList } from '../http/text-list.ts';
import type { Service } from '../node/service.ts';
import type { Call, GuardedOperation, Route } from './operation.ts';

function operation(
  name: string,
  capability: NonNullable<GuardedOperation['capability']>,
  run: (service: Service, call: Call) => Promise<Reply>,
): GuardedOperation {
  return {
    name,
    access: 'token',
    capability,
    run: ({ service }, call) => run(service, call),
  };
}

const nameIn = ({ params }: Call): string => params['name'] ?? '';

const quotaJson = (quota: Quota): string =>
  JSON.stringify({
    block_interval: quota.blockIntervalS,
    group_by: quota.groupBy,
    inheritable: true,
    interval: quota.intervalS,
    name: quota.name,
    path: quota.path,
    rate: quota.rate,
    role: quota.role,
    type: 'rate-limit',
  });

const read = operation('quota-read', 'read', async ({ quotas }, call) => {
  const found = await quotas.find(nameIn(call));
  if (found === undefined) throw new RequestError('not_found', '');
  return dataReply(quotaJson(found));
});

const list = operation('quota-list', 'list', async ({ quotas }) => {
  const keys = await quotas.list();
  if (keys.length === 0) throw new RequestError('not_found', '');
  return dataReply(JSON.stringify({ keys }));
});

const write = operation('quota-write', 'update', async (service, call) => {
  const { values, warnings } = fields(
    {
      name: 'string',
      type: 'string',
      path: 'string',
      role: 'string',
      rate: 'any',
      interval: 'duration',
      block_interval: 'duration',
      inheritable: 'bool',
      group_by: 'string',
    },
    call.body,
    call.params,
  );
  const path = values.path?.replace(/^\//, '');
  if (path !== undefined) await requireMount(service, path);
  await service.quotas.write(nameIn(call), {
    path,
    role: values.role,
    rate: rateOf(values.rate),
    intervalS: values.interval === 0 ? undefined : values.interval,
    blockIntervalS: values.block_interval,
    groupBy: groupOf(values.group_by),
  });
  return writtenReply(warnings);
});

function groupOf(value: string | undefined): Quota['groupBy'] | undefined {
  if (value === undefined || value === '') return undefined;
  if (value === 'ip' || value === 'token') return value;
  throw new RequestError('invalid_request', "'group_by' is ip or token");
}

function rateOf(value: JsonValue | undefined): number | undefined {
  if (value === undefined || value === null) return undefined;
  const rate =
    typeof value === 'number' ? value : typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
  if (Number.isNaN(rate))
    throw new RequestError(
      'invalid_field',
      'Field validation failed: error converting input for field "rate": expected a number',
    );
  return rate;
}

/** A quota on a path that leads nowhere is a mistake: it would limit nothing. */
async function requireMount({ mounts, logins }: Service, path: string): Promise<void> {
  if (path === '' || /^(?:sys|auth\/token)\//.test(path) || mounts.list.some((mount) => `${path}/`.startsWith(`${mount.path}/`)))
    return;
  const method = /^auth\/([^/]+)\//.exec(`${path}/`)?.[1];
  if (method !== undefined && (await logins.mounts.find(method)) !== undefined) return;
  throw new RequestError('invalid_request', `invalid mount path: nothing is mounted at ${JSON.stringify(path)}`);
}

const remove = operation('quota-delete', 'delete', async ({ quotas }, call) => {
  await quotas.delete(nameIn(call));
  return noContent;
});

const readConfig = operation('quota-config-read', 'read', async ({ quotas }) => {
  const { responseHeaders, exemptPaths } = quotas.config;
  const data = {
    absolute_rate_limit_exempt_paths: [],
    enable_rate_limit_audit_logging: false,
    enable_rate_limit_response_headers: responseHeaders,
    rate_limit_exempt_paths: exemptPaths,
  };
  return dataReply(JSON.stringify(data));
});

const writeConfig = operation('quota-config-write', 'update', async ({ quotas }, { body }) => {
  const { values, warnings } = fields(
    { enable_rate_limit_response_headers: 'bool', rate_limit_exempt_paths: 'any', enable_rate_limit_audit_logging: 'bool' },
    body,
  );
  await quotas.configure({
    responseHeaders: values.enable_rate_limit_response_headers,
    exemptPaths: textList('rate_limit_exempt_paths', values.rate_limit_exempt_paths)?.filter((path) => path !== ''),
  });
  return writtenReply(warnings);
});

/** How often callers may ask, by path. */
export const quotaRoutes: readonly Route[] = [
  { path: 'sys/quotas/config', operations: { GET: readConfig, POST: writeConfig } },
  { path: 'sys/quotas/rate-limit', operations: { LIST: list } },
  { path: 'sys/quotas/rate-limit/:name', operations: { GET: read, POST: write, DELETE: remove } },
];
