# The image of one node: Node, the production dependencies and the sources, which Node runs directly. No compiler, no tests.
# A tag can be moved to other content. For production, name the base by a digest that you have verified:
#   docker build --build-arg BASE=node:24-bookworm-slim@sha256:<digest of `docker buildx imagetools inspect node:24-bookworm-slim`> .
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS tree
WORKDIR /opt/transitd
COPY . .
# Set to `true` if the build context contains node_modules, for a build without a network.
ARG INSTALL="npm ci --omit=dev --ignore-scripts"
RUN ${INSTALL}
# The root of the data volume belongs to the only user that may read it. The node creates its own folder in it.
RUN install -d -m 0700 -o 65532 -g 65532 /var/lib/transitd
# Compiles the sources, and the libraries that load on demand, into Node's cache, as the user
# that will run them. That user can read the image, not change it.
RUN install -d -o 65532 node_modules/.cache/transitd
USER 65532:65532
RUN NODE_COMPILE_CACHE=/opt/transitd/node_modules/.cache/transitd node --input-type=module \
  -e "const names = ['server/src/run-server', 'server/src/dev', 'cli/src/commands/healthcheck', 'cli/src/local/healthcheck', \
        'cluster/src/membership/reflect-metadata', 'server/src/tracing/otel-tracer', 'server/src/tracing/otlp-exporter', \
        'storage-etcd/src/client/connect-etcd']; \
      await Promise.all(names.map((name) => import('./packages/' + name + '.ts'))); \
      await Promise.all(['@peculiar/x509', 'jose', 'level', 'yaml'].map((library) => import(library)))" \
  && node packages/server/transitd.mjs completion bash > /dev/null && chmod -R a+rX node_modules/.cache/transitd

FROM ${BASE}
COPY --from=tree --chown=0:0 /opt/transitd /opt/transitd
COPY --from=tree --chown=65532:65532 /var/lib/transitd /var/lib/transitd
ENV MALLOC_ARENA_MAX=2
# The chart runs the program by its name, and so do operators in a container.
RUN printf '#!/bin/sh\nexec node --disable-sigusr1 --max-semi-space-size=8 /opt/transitd/packages/server/transitd.mjs "$@"\n' \
  > /usr/local/bin/transitd && chmod 0755 /usr/local/bin/transitd
USER 65532:65532
# The node writes only to this volume: run it with --read-only.
VOLUME /var/lib/transitd
EXPOSE 8200 8201 8202
# On SIGTERM the node transfers leadership, finishes requests in flight and exits with 0.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=30s --start-period=30s --retries=3 CMD ["transitd", "healthcheck"]
ENTRYPOINT ["transitd"]
CMD ["server", "--config", "/etc/transitd/transitd.yaml"]
