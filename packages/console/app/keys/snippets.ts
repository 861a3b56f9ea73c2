/** A request as the samples show it. All values of the body are strings. */
export interface Sampled {
  /** The origin of the node. */
  readonly origin: string;
  /** Path below `/v1/`, encoded. */
  readonly path: string;
  readonly body: Readonly<Record<string, string>>;
}

export const languages = ['curl', 'TypeScript', 'Python'] as const;
export type Language = (typeof languages)[number];

/**
 * Returns a program that sends the request. It reads the token from the environment variable `TRANSITD_TOKEN`, so that no token is copied
 * with it. Texts of the caller are quoted for the language, whatever they contain.
 */
export function snippet(language: Language, sampled: Sampled): string {
  switch (language) {
    case 'curl':
      return curl(sampled);
    case 'TypeScript':
      return typeScript(sampled);
    case 'Python':
      return python(sampled);
  }
}

/** Quotes a text for a POSIX shell: nothing inside single quotes has a meaning but the quote itself. */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const urlOf = ({ origin, path }: Sampled): string => `${origin}/v1/${path}`;

const curl = (sampled: Sampled): string =>
  [
    `curl -sS ${shellQuoted(urlOf(sampled))} \\`,
    '  -H "X-Service-Token: $TRANSITD_TOKEN" \\',
    `  -d ${shellQuoted(JSON.stringify(sampled.body))}`,
  ].join('\n');

const typeScript = (sampled: Sampled): string => `const response = await fetch(${JSON.stringify(urlOf(sampled))}, {
  method: "POST",
  headers: { "X-Service-Token": process.env.TRANSITD_TOKEN ?? "" },
  body: JSON.stringify(${JSON.stringify(sampled.body)}),
});
if (!response.ok) throw new Error(await response.text());
const { data } = await response.json();
console.log(data);`;

/** A JSON object whose values are strings is also a Python dictionary. */
const python = (sampled: Sampled): string => `import json, os, urllib.request

request = urllib.request.Request(
    ${JSON.stringify(urlOf(sampled))},
    data=json.dumps(${JSON.stringify(sampled.body)}).encode(),
    headers={"X-Service-Token": os.environ["TRANSITD_TOKEN"]},
)
with urllib.request.urlopen(request) as response:
    print(json.dumps(json.load(response)["data"]))`;
