/** What a secret looks like where it has leaked: raw, in hex, in base64 whatever stands before it, and percent-encoded byte by byte. */
export function shapesOf(secret: Buffer): Buffer[] {
  const hex = secret.toString('hex');
  const percent = hex.replace(/../g, '%$&');
  const shapes = [secret, ...[hex, hex.toUpperCase(), percent, percent.toUpperCase()].map((text) => Buffer.from(text))];
  for (const alignment of [0, 1, 2]) {
    for (const encoding of ['base64', 'base64url'] as const) {
      const text = Buffer.concat([Buffer.alloc(alignment), secret])
        .toString(encoding)
        .replace(/=+$/, '');
      // The first characters depend on what stands before the secret, the last ones on what follows.
      shapes.push(Buffer.from(text.slice(alignment === 0 ? 0 : alignment + 1, -2)));
    }
  }
  return shapes.filter((shape, at) => shapes.findIndex((other) => other.equals(shape)) === at);
}
