# docker build -t penstock .
# docker run --read-only -v ./penstock.yaml:/etc/penstock/penstock.yaml:ro -p 8080:8080 penstock
# docker run --read-only -v ./penstock.yaml:/etc/penstock/penstock.yaml:ro penstock check
# docker run --read-only --no-healthcheck -p 9101:9101 penstock bank --host 0.0.0.0
#
# docs/operations/container.md explains the image.

# The package, as `npm pack` creates it, and its dependencies in the versions of the lock file.
FROM node:24-bookworm-slim AS package
WORKDIR /build
COPY package.json package-lock.json ./
COPY tools ./tools
RUN npm ci
COPY LICENSE README.md CHANGELOG.md SECURITY.md tsconfig.json tsconfig.build.json ./
COPY bin ./bin
COPY config ./config
COPY examples/banks ./examples/banks
COPY src ./src
RUN npm pack --pack-destination=/tmp
WORKDIR /opt/penstock
RUN tar -xzf /tmp/penstock-gateway-penstock-*.tgz --strip-components=1
RUN cp /build/package-lock.json . && npm ci --omit=dev && rm package-lock.json

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /opt/penstock
COPY --from=package /opt/penstock ./

# The gateway listens on 127.0.0.1 by default, where nothing outside the container reaches it. This variable overrides
# listen.host of the file. The admin listener stays on loopback: before you set PENSTOCK_ADMIN_HOST, configure
# admin.operators, or the gateway refuses to start.
ENV PENSTOCK_CONFIG=/etc/penstock/penstock.yaml \
    PENSTOCK_LISTEN_HOST=0.0.0.0

# By number, so that Kubernetes can see that it is not root; 1000 is the user `node` of the base image.
USER 1000:1000
EXPOSE 8080 9090

# Runs inside the container, so it works although the admin listener is on loopback. It finds admin.port in the
# configuration.
HEALTHCHECK --interval=30s --timeout=10s --start-period=15s \
  CMD ["node", "/opt/penstock/bin/penstock.cjs", "health", "--live"]

ARG REVISION=unknown
LABEL org.opencontainers.image.title="Penstock" \
      org.opencontainers.image.description="Gateway between a TPP platform and a bank's PSD2 payment-initiation API" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/penstock-gateway/penstock" \
      org.opencontainers.image.documentation="https://github.com/penstock-gateway/penstock/blob/main/docs/operations/container.md"

# Arrays, so that the gateway itself receives SIGTERM and drains: `docker stop --timeout 45`.
ENTRYPOINT ["node", "/opt/penstock/bin/penstock.cjs"]
CMD ["serve"]
