// Reads the plain Kubernetes manifests.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { root } from '../process/live-server.ts';

export const manifestsFile = join(root, 'deploy/kubernetes/transitd.yaml');

interface Probe {
  readonly httpGet: { readonly port: string; readonly path: string };
  readonly periodSeconds: number;
  readonly failureThreshold: number;
}

export interface Container {
  readonly name: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly startupProbe: Probe;
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: object;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data: Readonly<Record<string, string>>;
  readonly rules: readonly object[];
  readonly spec: {
    readonly replicas: number;
    readonly podManagementPolicy: string;
    readonly minReadySeconds?: number;
    readonly maxUnavailable?: number;
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
    readonly updateStrategy: { readonly type: string };
    readonly publishNotReadyAddresses?: boolean;
    readonly selector?: object;
    readonly template: {
      readonly metadata: {
        readonly labels: Readonly<Record<string, string>>;
        readonly annotations: Readonly<Record<string, string>>;
      };
      readonly spec: {
        readonly securityContext: object;
        readonly affinity: {
          readonly podAntiAffinity: {
            readonly requiredDuringSchedulingIgnoredDuringExecution: readonly {
              readonly topologyKey: string;
              readonly labelSelector: { readonly matchLabels: object };
            }[];
          };
        };
        readonly enableServiceLinks: boolean;
        readonly automountServiceAccountToken: boolean;
        readonly terminationGracePeriodSeconds: number;
        readonly containers: readonly Container[];
      };
    };
  };
}

/** Parses manifests as Kubernetes does: YAML 1.1. @throws on a syntax error */
export const parseManifests = (text: string): readonly Manifest[] =>
  parseAllDocuments(text, { version: '1.1' })
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);

/** Returns the manifest of this kind and name. @throws if the manifest is missing */
export function manifest(kind: string, name: string): Manifest {
  const found = parseManifests(readFileSync(manifestsFile, 'utf8')).find(
    (each) => each.kind === kind && each.metadata.name === name,
  );
  if (found === undefined) throw new Error(`there is no ${kind} ${name} in ${manifestsFile}`);
  return found;
}

/** Returns a container of the StatefulSet. @throws if the container is missing */
export function container(name: string): Container {
  const found = manifest('StatefulSet', 'transitd').spec.template.spec.containers.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no container ${name}`);
  return found;
}

/** Returns the environment of a container, as Kubernetes expands it for this pod. */
export function nodeEnvironment(node: Container, pod: string): Record<string, string> {
  const expanded: Record<string, string> = { POD_NAME: pod };
  for (const { name, value } of node.env)
    if (value !== undefined) expanded[name] = value.replace(/\$\((\w+)\)/g, (_, variable: string) => expanded[variable] ?? '');
  return expanded;
}
