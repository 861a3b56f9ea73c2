# One node. The image holds Node, the production dependencies and the sources, which Node runs as they are; no compiler, no tests.
# A tag can be moved to other content. For production name the base by the digest that you have checked:
#   docker build --build-arg BASE=node:24-bookworm-slim@sha256:<digest of `docker buildx imagetools inspect node:24-bookworm-slim`> .
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS tree
WORKDIR /opt/transitd
COPY . .
# `true` where the context brings the production tree with it, for a build without a network.
ARG INSTALL="npm ci --omit=dev --ignore-scripts"
RUN ${INSTALL}
# The root of the data volume belongs to the one user that may read it; the node makes its own folder below.
RUN install -d -m 0700 -o 65532 -g 65532 /var/lib/transitd
# What a node runs, compiled once (decision 71), under the user that will run it, who reads what the image holds and cannot write it.
RUN install -d -o 65532 node_modules/.cache/transitd
USER 65532:65532
RUN NODE_COMPILE_CACHE=/opt/transitd/node_modules/.cache/transitd node --input-type=module \
  -e "await Promise.all(['server/src/run-server', 'server/src/dev', 'cli/src/commands/healthcheck', 'cli/src/work/healthcheck'].map((name) => import('./packages/' + name + '.ts')))" \
  && node packages/server/transitd.mjs completion bash > /dev/null && chmod -R a+rX node_modules/.cache/transitd

FROM ${BASE}
COPY --from=tree --chown=0:0 /opt/transitd /opt/transitd
COPY --from=tree --chown=65532:65532 /var/lib/transitd /var/lib/transitd
USER 65532:65532
# Nothing is written outside this volume: run it with --read-only.
VOLUME /var/lib/transitd
EXPOSE 8200 8201 8202
# SIGTERM hands leadership over, finishes what is in flight and ends with 0.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 \
  CMD ["node", "/opt/transitd/packages/server/transitd.mjs", "healthcheck"]
ENTRYPOINT ["node", "--disable-sigusr1", "--max-semi-space-size=8", "/opt/transitd/packages/server/transitd.mjs"]
CMD ["server", "--config", "/etc/transitd/transitd.yaml"]
