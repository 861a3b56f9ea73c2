import { dataReply, integer, list, object, orNull, string, text, texts } from '@transitd/http';
import * as answers from '../operation/answers.ts';
import { checkGivenPaths } from '../operation/given-paths.ts';
import { guarded, type Route } from '../operation/operation.ts';

/** Each path is compared with all rules of the policy. */
const pathsMax = 100;

/** Validates a policy and evaluates it on paths, without writing it. */
const check = guarded({
  name: 'policy-check',
  about: 'Validate a policy and evaluate it alone on paths, without writing it',
  takes: {
    policy: text('Policy in HCL or JSON, as plain text or in base64', { required: true, long: true }),
    paths: texts('Paths to evaluate; with a slash at the end for a list'),
  },
  answers: answers.data(
    object({
      rules: integer,
      decisions: list(object({ path: string, capabilities: list(string), rule: orNull(string) })),
    }),
  ),
  capability: 'update',
  where: 'replica',
  parsesText: true,
  run: async ({ services }, { values: { policy = '', paths = [] }, warnings }) => {
    checkGivenPaths(paths, pathsMax);
    const { rules, notices, decisions } = await services.policies.check(policy, paths);
    const rows = decisions.map(({ path, capabilities, rule = null }) => ({ path, capabilities, rule }));
    return dataReply({ rules, decisions: rows }, [...warnings, ...notices]);
  },
});

export const policyCheckRoutes: readonly Route[] = [{ path: 'sys/policies/check', operations: { POST: check } }];
