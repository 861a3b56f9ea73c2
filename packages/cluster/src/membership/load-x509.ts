/**
 * Loads the library for certificates and requests. With its parts it has some 200 modules, which gateways and single nodes never need.
 * Loading takes about 100 ms of one turn of the event loop, so a node with a cluster port calls this before it opens the port: later, a
 * leader would miss heartbeats.
 */
export async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  await import('./reflect-metadata.ts'); // the library needs it
  return import('@peculiar/x509');
}
