/** Every name under which a status code can be overridden, with its default. */
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
  /** A standby answers with the active code. */
  readonly standbyOk: boolean;
  /** A performance standby answers with the active code. */
  readonly performanceStandbyOk: boolean;
  readonly codes: Readonly<Record<HealthCode, number>>;
}

/** Codes that a server can answer with: below 200 clients hang or misread, above 599 is no HTTP. */
export const codeMin = 200;
export const codeMax = 599;

const codeNames = Object.keys(defaultCodes) as HealthCode[];
const nothingAsked: HealthQuery = { standbyOk: false, performanceStandbyOk: false, codes: defaultCodes };

/**
 * Reads all overrides before any state is looked at, so a probe with a mistake in it fails on a healthy node too. Unknown names
 * are ignored, of a repeated one the first value counts.
 * @returns undefined when a value is refused: the answer is then 400 with an empty error list
 */
export function parseHealthQuery(query: { get(name: string): string | null; readonly size: number }): HealthQuery | undefined {
  if (query.size === 0) return nothingAsked;
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

/** Go's strconv.ParseBool; absent, empty or bare is false. */
function parseBoolean(text: string | null): boolean | undefined {
  if (text === null || text === '' || /^(?:0|f|F|FALSE|false|False)$/.test(text)) return false;
  return /^(?:1|t|T|TRUE|true|True)$/.test(text) ? true : undefined;
}

/** A decimal integer, sign and leading zeros allowed. */
function parseCode(text: string): number | undefined {
  const code = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  return code >= codeMin && code <= codeMax ? code : undefined;
}
