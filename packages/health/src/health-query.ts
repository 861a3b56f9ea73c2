/** The query parameters that override a status code, with the default codes. */
export const defaultCodes = {
  activecode: 200,
  standbycode: 429,
  drsecondarycode: 472,
  performancestandbycode: 473,
  haunhealthycode: 474,
  uninitcode: 501,
  sealedcode: 503,
  removedcode: 530,
} as const;

export type HealthCode = keyof typeof defaultCodes;

export interface HealthQuery {
  /** Whether a standby responds with the active code. */
  readonly standbyOk: boolean;
  /** Whether a performance standby responds with the active code. */
  readonly performanceStandbyOk: boolean;
  readonly codes: Readonly<Record<HealthCode, number>>;
}

/** Allowed codes: clients misread responses below 200, and HTTP has no codes above 599. */
export const codeMin = 200;
export const codeMax = 599;

const codeNames = Object.keys(defaultCodes) as HealthCode[];
const defaultQuery: HealthQuery = { standbyOk: false, performanceStandbyOk: false, codes: defaultCodes };

/**
 * Parses all overrides independently of the node's state, so that a wrong probe fails on a healthy node too. Unknown names are
 * ignored. Of a repeated name the first value counts.
 * @returns undefined when a value is invalid; the response is then 400 with an empty error list
 */
export function parseHealthQuery(query: { get(name: string): string | null; readonly size: number }): HealthQuery | undefined {
  if (query.size === 0) return defaultQuery;
  const standbyOk = parseBoolean(query.get('standbyok'));
  const performanceStandbyOk = parseBoolean(query.get('perfstandbyok'));
  if (standbyOk === undefined || performanceStandbyOk === undefined) return undefined;
  const codes: Record<HealthCode, number> = { ...defaultCodes };
  for (const name of codeNames) {
    const text = query.get(name);
    if (text === null) continue;
    const code = parseCode(text);
    if (code === undefined) return undefined;
    codes[name] = code;
  }
  return { standbyOk, performanceStandbyOk, codes };
}

/** Parses a boolean as Go's strconv.ParseBool does; an absent or empty value is false. */
function parseBoolean(text: string | null): boolean | undefined {
  if (text === null || text === '' || /^(?:0|f|F|FALSE|false|False)$/.test(text)) return false;
  return /^(?:1|t|T|TRUE|true|True)$/.test(text) ? true : undefined;
}

/** Parses a decimal integer, with optional sign and leading zeros. */
function parseCode(text: string): number | undefined {
  const code = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  return code >= codeMin && code <= codeMax ? code : undefined;
}
