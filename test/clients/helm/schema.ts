// Compares manifests with the schemas of the Kubernetes API, and refuses members that the schemas do not have, as `kubectl apply` does.

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

export class KubernetesSchemas {
  readonly #definitions: Readonly<Record<string, Schema>>;
  readonly #kinds = new Map<string, Schema>();

  /** @param document - the OpenAPI 2 document of the API */
  constructor(document: { readonly definitions: Readonly<Record<string, Schema>> }) {
    this.#definitions = document.definitions;
    for (const schema of Object.values(document.definitions)) {
      for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? [])
        this.#kinds.set(`${group === '' ? '' : `${group}/`}${version} ${kind}`, schema);
    }
  }

  /** Returns the faults of a manifest, each with its path; undefined if the API lacks the kind. */
  faults(manifest: { readonly apiVersion: string; readonly kind: string }): readonly string[] | undefined {
    const schema = this.#kinds.get(`${manifest.apiVersion} ${manifest.kind}`);
    return schema && [...this.#faults(manifest, schema, manifest.kind)];
  }

  *#faults(value: unknown, schema: Schema, path: string): Generator<string> {
    if (schema.$ref !== undefined) {
      const name = schema.$ref.replace('#/definitions/', '');
      const definition = this.#definitions[name];
      if (definition === undefined) throw new Error(`the schemas have no ${name}`);
      yield* this.#faults(value, definition, path);
      return;
    }
    const { type } = schema;
    if (schema.enum !== undefined && !schema.enum.includes(value)) yield `${path}: ${JSON.stringify(value)} is no allowed value`;
    if (type === 'array') yield* this.#arrayFaults(value, schema, path);
    else if (type === 'object' || schema.properties !== undefined) yield* this.#objectFaults(value, schema, path);
    else if (!isOf(value, schema)) yield `${path}: ${JSON.stringify(value)} is no ${type}`;
  }

  *#arrayFaults(value: unknown, { items = {} }: Schema, path: string): Generator<string> {
    if (!Array.isArray(value)) {
      yield `${path}: no list`;
      return;
    }
    for (const [index, item] of value.entries()) yield* this.#faults(item, items, `${path}[${index}]`);
  }

  *#objectFaults(value: unknown, schema: Schema, path: string): Generator<string> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      yield `${path}: no object`;
      return;
    }
    const { properties, additionalProperties, required = [] } = schema;
    for (const name of required) if (!(name in value)) yield `${path}.${name}: missing`;
    for (const [name, member] of Object.entries(value)) {
      const known = properties?.[name] ?? additionalProperties;
      if (known !== undefined) yield* this.#faults(member, known, `${path}.${name}`);
      else if (properties !== undefined) yield `${path}.${name}: unknown`;
    }
  }
}

function isOf(value: unknown, { type, format }: Schema): boolean {
  if (format === 'int-or-string') return typeof value === 'string' || Number.isInteger(value);
  if (type === 'string') return typeof value === 'string';
  if (type === 'integer') return Number.isInteger(value);
  return type === undefined || typeof value === type;
}
