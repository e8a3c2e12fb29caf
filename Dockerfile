# docker build -t penstock .
# docker run --read-only -v ./penstock.yaml:/etc/penstock/penstock.yaml:ro -p 8080:8080 penstock
#
# Set listen.publicUrl in the configuration: the gateway cannot know the address of the container's host.
# It writes nothing to the disk, unless state.file says so: give that a volume.
FROM node:24-bookworm-slim

ENV NODE_ENV=production
WORKDIR /opt/penstock

# The optional dependencies are a Node for machines with an older one; the image has its own.
COPY package.json package-lock.json ./
RUN --mount=type=tmpfs,target=/tmp/npm npm ci --omit=dev --omit=optional --cache=/tmp/npm
COPY LICENSE ./
COPY bin ./bin
COPY src ./src

# The gateway listens on 127.0.0.1 unless told otherwise, where nobody outside the container could reach it.
# This variable wins over listen.host in the file. The operators' port stays on loopback: before setting
# PENSTOCK_ADMIN_HOST, give the operators tokens, or the gateway refuses to start.
ENV PENSTOCK_CONFIG=/etc/penstock/penstock.yaml \
    PENSTOCK_LISTEN_HOST=0.0.0.0

# By number, so that Kubernetes can see that it is not root; 1000 is the user `node` of the base image.
USER 1000:1000
EXPOSE 8080 9090

# Asks from inside, so it works although the operators' port is on loopback. A port other than 9090 that stands in
# the file alone is not seen here: set PENSTOCK_ADMIN_PORT instead.
HEALTHCHECK --interval=15s --timeout=3s --start-period=10s \
  CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.PENSTOCK_ADMIN_PORT ?? 9090}/health/live`, { signal: AbortSignal.timeout(2000) }).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

# An array, so that the gateway itself gets SIGTERM and lets running requests end: `docker stop --time 45`.
CMD ["node", "src/main.ts", "serve"]
